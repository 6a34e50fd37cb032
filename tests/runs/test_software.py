import subprocess

from regoal.runs.software import commit_of


def test_only_changes_of_the_package_make_a_commit_dirty(tmp_path):
    source = tmp_path / "src" / "regoal"
    source.mkdir(parents=True)
    (source / "code.py").write_text("1")
    (tmp_path / "records").write_text("1")
    assert commit_of(source) is None

    def git(*words):
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        command = ["git", "-C", str(tmp_path), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "records").write_text("2")
    (source / "new.py").write_text("not part of it yet")
    assert commit_of(source) == commit
    (source / "code.py").write_text("2")
    assert commit_of(source) == f"{commit}-dirty"
    assert commit_of(tmp_path) is None
