"""Words that a format knows, of which inputs are made: what a fuzzer would take long to spell."""

from __future__ import annotations

MESSAGE_WORDS = (
    "role content user assistant system tool developer function text type image_url url data:image/png;base64,AAAA file "
    "file_data filename input_audio tool_calls id arguments name tool_call_id tool_use tool_result tool_use_id input "
    "is_error thinking signature redacted_thinking document source media_type data base64 image refusal message choices "
    '{} [] {"a":1} reasoning opaque extra detail part kind created_at'
).split()  # fmt: skip
LINE_WORDS = (
    "lamina id content memory text layer longterm working user global owner user_id userId namespace tags metadata relevance "
    "base_relevance confidence ttl created_at updated_at expires_at last_accessed_at occurred_at valid_until access_count "
    "revision superseded_by source trust trusted untrusted derived_from embedding provider model dimensions float32 AACAPw== "
    "2026-01-31T10:00:00+00:00 0001-01-01T00:00:00+23:59 9999-12-31T23:59:59-23:59"
).split()
FILTER_WORDS = "and or not eq ne gt gte lt lte in not_in contains exists a.b a status due $ne op path".split()
PERIOD_WORDS = (
    "in on last next ago this week weeks month year day days yesterday today tomorrow May March Monday Friday 1999 2023 31 29 0 7th "
    "vor zwei Wochen gestern letzten Montag im il y a deux jours hier hace tres semanas ayer 年 月 日 去年 昨天 先週 三 前 . , - : 2023-02-29 "
    "999 in the between and of februari 二〇二三 when did wann quand 何時"
).split() + [" "] * 20  # fmt: skip
MARKDOWN_WORDS = [
    "# ", "## ", "- ", "  ", "\t", "1. ", "> ", "```", "~~~", "|", "|-|", "\n", "\n\n", "---\n", "title: x\n", "+++\n", "<!--", "-->", "***", "    ", "{ #a }", "[a](b)", ". ", "! ", "。", "word ",
]  # fmt: skip
SECRET_WORDS = [
    "sk-", "ghp_", "AKIA", "xoxb-", "eyJ", ".", "password", "=", ": ", "://", "@", "Bearer ", "-----BEGIN RSA PRIVATE KEY-----", "-----END", "4111 1111 1111 1111", "abcDEF123456", "a1B2", "api_key", "token", "\n", "postgres://u:p@h", "AIza", "0123456789abcdef", "-", "_", "/", "+",
]  # fmt: skip
FACT_WORDS = (
    "I live in work at my name is User likes love prefer remember that never always , and . ? ! \" « » ( https://a.b/c /a/b.py 12.5 % € # ` Ich heiße moi j'habite 私は ".split()
    + [" "] * 16
)
SETTING_WORDS = (
    "memory context rag packs server conversation agents scoring tiers embedder embedding language_model provider model url api_key path "
    "data_dir state_url http://127.0.0.1:1 sqlite postgres :memory: ~ relevance weights chunk_size chunk_overlap true 0.5 secrets flag mask refuse "
    "auto_save thresholds reranker preset evidence layers ttl working"
).split()  # fmt: skip
CONFIG_WORDS = ["mcpServers", "mcp_servers", "[mcp_servers.lamina]", "lamina", "{", "}", "[", "]", '"', ":", ",", "=", "\n", "command", "args", "env", "//", "/*", "*/", "#", "'''", '"""', "\ufeff", "\r\n", "[[a]]", "a.b", "1", "true"]  # fmt: skip
PLUGIN_WORDS = (
    "messages estimated_tokens system_prompt_addition sections dropped warnings ok compacted reason result summary "
    "first_kept_entry_id tokens_before tokens_after bootstrapped imported_messages ingested changed role content user assistant"
).split()
PACK_WORDS = (
    "content memory_type fact decision name source conversation confidence provenance tags metadata relationships expires_at id "
    "target type supersedes extends steps after tier gist full a 2026-01-31 0.5"
).split()
ANSWER_WORDS = ["```json\n", "\n```", "{", "}", "[", "]", '"facts"', '"content"', '"tags"', '"relevance"', '"layer"', ":", ",", "1", "0.5", "NaN", "1e999", '"a"', "\\ud800", "null", '"longterm"', " "]  # fmt: skip
SUMMARY_WORDS = "count time_range timeRange start end timestamp content userGoal last_step key_decisions criticalContext modified_files source custom 2026-01-31T10:00:00Z 0001-01-01T00:00:00+14:00".split()
MARKS = [
    "</", "<", ">", "memory", "</memory>", "<context>", "</context>", "system", "\n", "```", "~~~", "&lt;", "&#60;", "<|im_end|>", "user:", "\n\nHuman:", "[", "]", "(score 1.00)", "---", "=", '"', "/", "data", "\u200b", "\u202e", "＜", "[INST]", "<<SYS>>",
]  # fmt: skip
ODD = [
    "", " ", "\0", "\ufeff", "\ud800", "\udfff", "\u202e", "\u200b", "\u2028", "\x1b", "\n", "\r\n", "\t", "'", '"', "\\", "%", "_",
    "é", "e\u0301", "İ", "ß", "ﬁ", "的", "か", "ก", "😀", "\U0010ffff", "<", ">", "&", "```", "]]>", "<|im_start|>", "</memory>", "0", "-1", "9" * 25,
    "1e999", "NaN", "null", "true", "a", "A", "x" * 600,
]  # fmt: skip
