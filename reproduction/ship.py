"""Copy the policies of a sweep into the package: `python -m reproduction.ship runs/benchmark`.

For each domain, the policy that was best on the validation problems is copied: the one that solves
most, and among these needs the fewest steps. It must solve more than half of the test problems.
"""

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

from regoal.networks.policy_file import load_policy
from regoal.records.run_record import POLICY, RESULTS, read_results
from reproduction.words import words

POLICIES = Path(__file__).parent.parent / "src" / "regoal" / "policies"


def main() -> None:
    """Copy `RUNS/DOMAIN/HINDSIGHT/SEED/policy.safetensors` to `policies/DOMAIN.safetensors`."""
    POLICIES.mkdir(exist_ok=True)
    found: defaultdict[str, list[tuple[int, int, Path]]] = defaultdict(list)
    for path in [path for runs in words(Path, "runs", __doc__) for path in policies_of(runs)]:
        validation: Any = load_policy(path).facts["validation"]
        found[path.parts[-4]].append((-validation["solved"], validation["plan_length"], path))
    for domain, policies in found.items():
        *_, path = min(policies)
        results = read_results(path.parent / RESULTS)
        if 2 * sum(result.solved for result in results) > len(results):
            shutil.copyfile(path, POLICIES / f"{domain}.safetensors")
            print(domain, path.parent)


def policies_of(runs: Path) -> list[Path]:
    """Find the policies of a sweep; ends the program if there are none."""
    paths = sorted(runs.glob(f"*/*/*/{POLICY}"))
    if not paths:
        raise SystemExit(f"{runs} holds no policy of a sweep, DOMAIN/HINDSIGHT/SEED/{POLICY}.")
    return paths


if __name__ == "__main__":
    main()
