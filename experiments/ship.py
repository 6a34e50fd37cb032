"""Copy the policies of a sweep into the package: `python -m experiments.ship runs/shipped`.

Only those that solve more than half of the test problems.
"""

import shutil
import sys
from pathlib import Path

from regoal.experiments.run_dir import POLICY, RESULTS, read_results
from regoal.networks.policy_file import load_policy

POLICIES = Path(__file__).parent.parent / "src" / "regoal" / "policies"


def main() -> None:
    """Copy `RUNS/DOMAIN/HINDSIGHT/SEED/policy.safetensors` to `policies/DOMAIN.safetensors`."""
    POLICIES.mkdir(exist_ok=True)
    for path in sorted(Path(sys.argv[1]).glob(f"*/*/*/{POLICY}")):
        results, domain = read_results(path.parent / RESULTS), path.parts[-4]
        if 2 * sum(result.solved for result in results) <= len(results):
            continue
        facts = load_policy(path).facts
        shutil.copyfile(path, POLICIES / f"{domain}.safetensors")
        print(domain, facts["validation"])


if __name__ == "__main__":
    main()
