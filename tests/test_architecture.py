"""The imports of the package: none in a circle, and no long chains of them."""

from graphlib import TopologicalSorter

import grimp

MOST_DEEP = 15
"""The longest chain of imports. To be lowered if it gets shorter, not to be raised."""


def depth_of(imported):
    """The modules in the longest chain. Raises `CycleError` if imports go in a circle."""
    depth = {}
    for module in TopologicalSorter(imported).static_order():
        depth[module] = 1 + max((depth[below] for below in imported[module]), default=0)
    return max(depth.values())


def test_imports_go_in_no_circle_and_are_not_deep():
    graph = grimp.build_graph("regoal", exclude_type_checking_imports=False, cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imported) > 100
    assert depth_of(imported) <= MOST_DEEP
