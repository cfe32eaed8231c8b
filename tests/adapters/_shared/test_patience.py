from lamina.adapters._shared.patience import attempts


def test_there_is_one_attempt_however_short_the_patience():
    assert len(list(attempts(-1, first=10, longest=10))) == 1


def test_there_are_more_until_the_patience_is_over():
    assert len(list(attempts(0.05, first=0.0001, longest=0.001))) > 2


def test_who_succeeds_is_not_kept_waiting():
    assert next(attempts(60, first=60, longest=60)) is None
