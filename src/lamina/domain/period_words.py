"""How languages speak of days, weeks, months and years: the words that `lamina.domain.periods` reads.

All words are as they are written, and are folded where they are used. Alternatives are separated by spaces, and words
of one alternative by `_`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["LEXICONS", "Lexicon"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """What one language calls periods.

    `months` and `weekdays` (Monday first) are separated by commas, each with its forms. `days` are words for single
    days, by their distance from today. `units` are `day`, `week`, `month`, `year` and `weekend`: the forms for one, and
    after a comma those for several. `numbers` are the words for 1, 2, 3 and so on, separated by commas. `last`, `this`
    and `next` stand before what they tell of, and where `is_side_behind`, behind it too. `ago` is what stands around a
    number of units, which is `*`. `within` stands before a month or a year, `on` before a day of the week (empty:
    nothing has to), `between` between the parts of a date; where `is_month_first`, "March 7" is a date. What stands
    behind one of `outside` is not when something was. `when` begins a question for a time. A language that
    `is_mistakable` is read only where no other one is likelier.
    """

    months: str
    weekdays: str
    days: dict[int, str]
    units: dict[str, str]
    numbers: str
    last: str
    this: str
    next: str
    ago: tuple[str, ...]
    within: str
    on: str
    between: str
    outside: str
    when: str
    is_month_first: bool = False
    is_side_behind: bool = False
    is_mistakable: bool = False


LEXICONS: Final = {
    "english": Lexicon(
        months=(
            "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,september sept sep,"
            "october oct,november nov,december dec"
        ),
        weekdays="monday,tuesday,wednesday,thursday,friday,saturday,sunday",
        days={-2: "the_day_before_yesterday", -1: "yesterday last_night", 0: "today tonight", 1: "tomorrow"},
        units={
            "day": "day,days",
            "week": "week,weeks",
            "month": "month,months",
            "year": "year,years",
            "weekend": "weekend",
        },
        numbers="a an one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve",
        last="last previous past",
        this="this current",
        next="next",
        ago=("* ago",),
        within="in during of",
        on="on",
        between="of",
        outside="before after since until till by",
        when=(
            "when what_day what_date what_month what_year what_time which_day which_week which_month which_year "
            "how_long"
        ),
        is_month_first=True,
    ),
    "german": Lexicon(
        months="januar jänner,februar feber,märz,april,mai,juni,juli,august,september,oktober,november,dezember",
        weekdays="montag,dienstag,mittwoch,donnerstag,freitag,samstag sonnabend,sonntag",
        days={-2: "vorgestern", -1: "gestern", 0: "heute", 1: "morgen", 2: "übermorgen"},
        units={
            "day": "tag,tage tagen",
            "week": "woche,wochen",
            "month": "monat monats,monate monaten",
            "year": "jahr jahres,jahre jahren",
            "weekend": "wochenende",
        },
        numbers="ein eine einer einem einen,zwei,drei,vier,fünf,sechs,sieben,acht,neun,zehn,elf,zwölf",
        last="letzte letzten letzter letztes letztem vorige vorigen voriges vorigem vergangene vergangenen vergangenes",
        this="diese diesen dieser dieses diesem",
        next="nächste nächsten nächster nächstes nächstem kommende kommenden",
        ago=("vor *",),
        within="im in während",
        on="am",
        between="im",
        outside="vor nach seit bis ab",
        when="wann seit_wann wie_lange welcher_tag an_welchem_tag in_welcher_woche in_welchem_monat in_welchem_jahr",
    ),
    "french": Lexicon(
        months="janvier,février,mars,avril,mai,juin,juillet,août,septembre,octobre,novembre,décembre",
        weekdays="lundi,mardi,mercredi,jeudi,vendredi,samedi,dimanche",
        days={-2: "avant-hier", -1: "hier", 0: "aujourd'hui", 1: "demain", 2: "après-demain"},
        units={
            "day": "jour,jours",
            "week": "semaine,semaines",
            "month": "mois",
            "year": "an année,ans années",
            "weekend": "week-end weekend",
        },
        numbers="un une,deux,trois,quatre,cinq,six,sept,huit,neuf,dix,onze,douze",
        last="dernier dernière passé passée",
        this="ce cet cette",
        next="prochain prochaine",
        ago=("il_y_a *",),
        within="en",
        on="",
        between="de",
        outside="avant après depuis jusqu'en dès",
        when="quand depuis_quand quel_jour quelle_semaine en_quel_mois quel_mois en_quelle_année quelle_année",
        is_side_behind=True,
        is_mistakable=True,  # "hier" is "here" in German and Dutch
    ),
    "spanish": Lexicon(
        months="enero,febrero,marzo,abril,mayo,junio,julio,agosto,septiembre setiembre,octubre,noviembre,diciembre",
        weekdays="lunes,martes,miércoles,jueves,viernes,sábado,domingo",
        days={-2: "anteayer antier", -1: "ayer anoche", 0: "hoy", 1: "mañana", 2: "pasado_mañana"},
        units={
            "day": "día,días",
            "week": "semana,semanas",
            "month": "mes,meses",
            "year": "año,años",
            "weekend": "fin_de_semana",
        },
        numbers="un una,dos,tres,cuatro,cinco,seis,siete,ocho,nueve,diez,once,doce",
        last="pasado pasada último última",
        this="este esta",
        next="próximo próxima",
        ago=("hace *",),
        within="en",
        on="el",
        between="de del",
        outside="antes_de después_de desde hasta",
        when="cuándo desde_cuándo qué_día en_qué_mes qué_mes en_qué_año qué_año cuánto_tiempo",
        is_side_behind=True,
    ),
    "italian": Lexicon(
        months="gennaio,febbraio,marzo,aprile,maggio,giugno,luglio,agosto,settembre,ottobre,novembre,dicembre",
        weekdays="lunedì,martedì,mercoledì,giovedì,venerdì,sabato,domenica",
        days={-2: "l'altroieri ieri_l'altro", -1: "ieri", 0: "oggi", 1: "domani", 2: "dopodomani"},
        units={
            "day": "giorno,giorni",
            "week": "settimana,settimane",
            "month": "mese,mesi",
            "year": "anno,anni",
            "weekend": "fine_settimana weekend",
        },
        numbers="un uno una,due,tre,quattro,cinque,sei,sette,otto,nove,dieci,undici,dodici",
        last="scorso scorsa passato passata",
        this="questo questa",
        next="prossimo prossima",
        ago=("* fa",),
        within="in nel",
        on="",
        between="di del",
        outside="prima_di dopo dal da fino_a entro",
        when="quando da_quando che_giorno in_che_mese in_che_anno quale_giorno quanto_tempo",
        is_side_behind=True,
    ),
    "portuguese": Lexicon(
        months="janeiro,fevereiro,março,abril,maio,junho,julho,agosto,setembro,outubro,novembro,dezembro",
        weekdays="segunda-feira,terça-feira,quarta-feira,quinta-feira,sexta-feira,sábado,domingo",
        days={-2: "anteontem", -1: "ontem", 0: "hoje", 1: "amanhã"},
        units={
            "day": "dia,dias",
            "week": "semana,semanas",
            "month": "mês,meses",
            "year": "ano,anos",
            "weekend": "fim_de_semana final_de_semana",
        },
        numbers="um uma,dois duas,três,quatro,cinco,seis,sete,oito,nove,dez,onze,doze",
        last="passado passada último última",
        this="este esta deste desta neste nesta",
        next="próximo próxima",
        ago=("há *", "* atrás"),
        within="em",
        on="na no",
        between="de do",
        outside="antes_de depois_de após desde até",
        when="quando desde_quando que_dia em_que_dia em_que_mês em_que_ano quanto_tempo",
        is_side_behind=True,
    ),
    "dutch": Lexicon(
        months="januari,februari,maart,april,mei,juni,juli,augustus,september,oktober,november,december",
        weekdays="maandag,dinsdag,woensdag,donderdag,vrijdag,zaterdag,zondag",
        days={-2: "eergisteren", -1: "gisteren", 0: "vandaag", 1: "morgen", 2: "overmorgen"},
        units={
            "day": "dag,dagen",
            "week": "week,weken",
            "month": "maand,maanden",
            "year": "jaar",
            "weekend": "weekend",
        },
        numbers="een één,twee,drie,vier,vijf,zes,zeven,acht,negen,tien,elf,twaalf",
        last="vorige afgelopen laatste",
        this="deze dit",
        next="volgende komende",
        ago=("* geleden",),
        within="in",
        on="op",
        between="van",
        outside="voor na sinds tot vanaf",
        when="wanneer sinds_wanneer welke_dag op_welke_dag in_welke_maand in_welk_jaar hoe_lang",
    ),
    "russian": Lexicon(
        months=(
            "январь января январе,февраль февраля феврале,март марта марте,апрель апреля апреле,май мая мае,"
            "июнь июня июне,июль июля июле,август августа августе,сентябрь сентября сентябре,октябрь октября октябре,"
            "ноябрь ноября ноябре,декабрь декабря декабре"
        ),
        weekdays="понедельник,вторник,среду,четверг,пятницу,субботу,воскресенье",
        days={-2: "позавчера", -1: "вчера", 0: "сегодня", 1: "завтра", 2: "послезавтра"},
        units={
            "day": "день,дня дней",
            "week": "неделю неделе,недели недель",
            "month": "месяц месяце,месяца месяцев",
            "year": "год году,года лет",
            "weekend": "выходные",
        },
        numbers="один одну,два две,три,четыре,пять,шесть,семь,восемь,девять,десять,одиннадцать,двенадцать",
        last="прошлый прошлая прошлую прошлой прошлом прошлого прошлое прошлые",
        this="этот эту этой этом этого",
        next="следующий следующую следующей следующем следующего",
        ago=("* назад",),
        within="в за",
        on="в во",
        between="в",
        outside="до после",
        when="когда какого_числа в_какой_день в_каком_месяце в_каком_году как_долго",
    ),
}
