from recallgym.experiments.names import nearest


def test_nearest_lists_everything_where_nothing_is_near():
    assert nearest("qqq", ["b", "a"]) == "valid: a, b"
    assert nearest("qqq", []) == "there are none"
