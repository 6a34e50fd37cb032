from reliability.kills import kill_soak


def test_killed_trainings_end_as_if_never_killed(tmp_path):
    found = kill_soak(tmp_path, seed=3, kills=4, seconds=60, episodes=12)
    assert found.faults == []
    assert found.kills >= 4
    assert found.resumes >= found.kills
