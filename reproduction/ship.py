"""Copy the policies of a sweep into the package: `python -m reproduction.ship runs/paper`.

For each domain, the policy that was best on the validation problems is copied: the one that solves
the most, then the most tenths with noise, then with the fewest actions. It must solve more than
half of the test problems. Rows with suffix -L are left out.

From the runs of the learning track, `python -m reproduction.ship runs/ipc2023`, only the domains
are copied that the other table does not have.
"""

import shutil
from collections import defaultdict
from dataclasses import fields
from pathlib import Path
from typing import Any

from regoal.networks.policy_file import load_policy
from regoal.records.run_record import POLICY, RESULTS, read_results
from regoal.records.validation import Validation
from reproduction.cells import RESULTS_FOLDER
from reproduction.ipc2023 import SHIPPED
from reproduction.timed_tests import read_domain
from reproduction.words import words

TRACK = "-2023"
"""The suffix of the learning track's domains."""
POLICIES = Path(__file__).parent.parent / "src" / "regoal" / "policies"


def main() -> None:
    """Copy `RUNS/DOMAIN/HINDSIGHT/SEED/policy.safetensors` to `policies/DOMAIN.safetensors`."""
    POLICIES.mkdir(exist_ok=True)
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in [path for runs in words(Path, "runs", __doc__) for path in policies_of(runs)]:
        folder = path.parts[-4]
        domain = folder.removesuffix(TRACK)
        known = folder != domain and domain in SHIPPED
        if not (known or domain.endswith("-l")):
            found[domain].append(path)
    for domain, policies in found.items():
        path = max(policies, key=rate)  # the first of equal ones
        if path.parts[-4].endswith(TRACK):
            results = read_domain(RESULTS_FOLDER / "ipc2023" / "trained", domain)
        else:
            results = read_results(path.parent / RESULTS)
        if 2 * sum(result.solved for result in results) > len(results):
            shutil.copyfile(path, POLICIES / f"{domain}.safetensors")
            print(domain, path.parent)


def rate(path: Path) -> tuple[int, int, int]:
    """Return how good validation has found a policy: more is better."""
    facts: Any = load_policy(path).facts["validation"]
    return Validation(
        **{f.name: facts[f.name] for f in fields(Validation) if f.name in facts}
    ).merit


def policies_of(runs: Path) -> list[Path]:
    """Find the policies of a sweep; ends the program if there are none."""
    paths = sorted(runs.glob(f"*/*/*/{POLICY}"))
    if not paths:
        raise SystemExit(f"{runs} holds no policy of a sweep, DOMAIN/HINDSIGHT/SEED/{POLICY}.")
    return paths


if __name__ == "__main__":
    main()
