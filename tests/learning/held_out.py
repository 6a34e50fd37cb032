"""Train a small policy and see how many held-out problems it solves."""

from regoal.evaluation.execution import execute
from regoal.learning.dqn import train
from regoal.learning.learner import Learner
from regoal.learning.replay import Replay
from regoal.learning.streams import Streams
from regoal.networks.encoder import Encoder
from regoal.networks.q_network import QNetwork
from regoal.networks.relations import relations_of
from regoal.planning.matching.library_schema import schema_of
from regoal.records.results import Outcome


def list_solved(training, held_out, config, *, capacity, max_steps):
    """Return how many held-out problems are solved after every fifth episode, until all are."""
    schema = schema_of(training[0].domain)
    relations = relations_of(
        schema, achieved_goals=config.achieved_goals, relaxed_plans=config.relaxed_plans
    )
    network, encoder = QNetwork(relations, config.embedding_size, seed=1), Encoder(relations)
    learner = Learner(network, encoder, config)
    replay = Replay(capacity, exponent=0.6, weight=0.4)
    solved = []
    for stats in train(training, learner, replay, Streams.from_seed(1)):
        if stats.episode % 5 == 0:
            ended = execute(network, encoder, held_out, layers=config.layers, max_steps=max_steps)
            solved.append(sum(x.outcome is Outcome.SOLVED for x in ended))
            if solved[-1] == len(held_out):
                break
    return solved
