"""Describe a run: its `config.json` and the facts in its policy files."""

from dataclasses import asdict

from regoal.networks.kernels.cpu import autograd as cpu_kernel
from regoal.networks.kernels.gpu import launch as gpu_kernel
from regoal.networks.q_network import QNetwork
from regoal.networks.tensor_file import Facts
from regoal.records.json_lines import JsonObject
from regoal.records.validation import Validation
from regoal.runs.folder import MAY_CHANGE
from regoal.runs.inputs import Inputs, name_problems
from regoal.runs.settings import RunSettings
from regoal.runs.software import environment, package_version


def config_record(settings: RunSettings, inputs: Inputs, network: QNetwork) -> JsonObject:
    """Every setting, what the inputs are, and the software and hardware at work."""
    weights, layout = network.weights, network.layout
    used = {
        "kernel": cpu_kernel.available(weights, layout) or gpu_kernel.available(weights, layout),
        "device": weights.device.type,
    }
    return {
        "domain": settings.name,
        "preset": settings.preset,
        **asdict(settings.config),
        "threads": settings.threads,
        "workers": settings.workers,
        "budget_s": settings.budget_s,
        "pddl_domain": inputs.domain.name,
        "fingerprint": inputs.schema.fingerprint(),
        "training_problems": len(inputs.tasks),
        "validation_problems": len(inputs.validation),
        **inputs.digests(),
        "paths": {
            "domain": str(settings.domain),
            "problems": name_problems(settings.problems),
            "validation": settings.validation and name_problems(settings.validation),
        },
        "environment": environment() | used,
    }


def policy_facts(settings: RunSettings, best: Validation) -> Facts:
    """Return the facts for a policy file: settings and validation of its training."""
    facts: Facts = {
        "domain": settings.name,
        "preset": settings.preset,
        "hindsight": settings.config.hindsight,
        "seed": settings.config.seed,
        "episode": best.episode,
        "validation": asdict(best) | {"coverage": best.coverage},
        "regoal": package_version(),
        "threads": settings.threads,
        "config": {k: v for k, v in asdict(settings.config).items() if k not in MAY_CHANGE},
    }
    return facts | ({"workers": settings.workers} if settings.workers > 1 else {})
