"""The encoder with which a policy runs on a domain that has been read."""

from regoal.networks.encoder import Encoder
from regoal.networks.policy_file import Policy
from regoal.planning.domain import Domain
from regoal.planning.matching.library_schema import schema_of
from regoal.planning.matching.schema import match


def policy_encoder(
    policy: Policy, domain: Domain, *, remember: int = 2_000_000
) -> tuple[Encoder, tuple[str, ...]]:
    """Make the encoder for a policy on a domain; also return notes about it for the user.

    Raises `UsageError`, which shows both domains, if the policy was trained on another domain.
    """
    matching = match(policy.schema, schema_of(domain))
    return Encoder(policy.network.relations, matching, remember=remember), matching.notes
