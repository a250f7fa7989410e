"""What no policy allocates more of: a bound on the GPUs that given pods can get on given nodes together, from a linear relaxation.

Equal pods are one kind k: there are m_k of them, each requests d_kr of resource r and g_k GPUs. Nodes with the same amounts that admit the
same kinds are one type t: there are n_t of them, each with C_tr. If x_kt pods of kind k run on nodes of type t, they have

    sum g_k x_kt  GPUs,   with  sum_k d_kr x_kt <= n_t C_tr,   sum_t x_kt <= m_k,   x_kt >= 0,   x_kt = 0 where t does not admit k.

Every placement is such an x. The relaxation forgets single nodes and cards, and cuts pods into pieces, so its optimum is at least what any
policy reaches. And by duality the optimum is at most, for *any* prices p_tr >= 0,

    sum_t n_t C_t p_t  +  sum_k m_k max(0, max_t (g_k - d_k p_t)).

So no solver is needed to be right, only to be close: the prices follow the subgradient (what is for sale less what is bought), and the
least bound of all steps counts. It begins with a price of 1 for a GPU and 0 for all else, which says that there are no more than all GPUs.
"""

from collections import Counter

import numpy as np

from pumice.scheduler.model import Cluster, Mask, Table, Vector
from pumice.scheduler.model.gpu_cards import GPU_MILLI_NAME
from pumice.scheduler.plugins.kube.node_affinity import required_matches

THOUSANDTHS = 1e6  #: of thousandths, as amounts are stored
STEPS = 1000
STRIDE = 0.5  #: of the first step, in prices at which all of a node's resource is worth its GPUs


def most_gpus(cluster: Cluster) -> float:
    """No policy allocates more GPUs to the pods of the cluster, whose GPUs are counted in thousandths."""
    column = cluster.dimensions.columns[GPU_MILLI_NAME]
    templates = Counter(task.template for task in cluster.tasks.values())
    size = len(cluster.nodes.allocatable)
    asks = np.array([np.concatenate([kind.request, required_matches(kind.spec, cluster.nodes)]) for kind in templates])
    asks, kind_of = np.unique(asks, axis=0, return_inverse=True)
    many: Vector = np.zeros(len(asks))
    np.add.at(many, kind_of.ravel(), [*templates.values()])
    wanted, admitted = np.split(asks, [size], axis=1)
    offers, count = np.unique(np.vstack([cluster.nodes.allocatable, admitted]), axis=1, return_counts=True)
    offered, admits = np.split(offers, [size])
    used = np.flatnonzero(wanted.any(axis=0) & offered.any(axis=1))
    gpus = int(np.searchsorted(used, column))
    return least_price(wanted[:, used], many, offered[used].T, count.astype(float), admits.T > 0, gpus) / THOUSANDTHS


def least_price(wanted: Table, many: Vector, offered: Table, count: Vector, admits: Mask, gpus: int) -> float:
    """The least bound of all steps. Tables are by kind and resource, by type and resource; `admits` is by type and kind."""
    unit = np.where(offered > 0, offered[:, [gpus]] / np.maximum(offered, 1), 0.0)  # the price at which a resource is worth the node's GPUs
    prices = np.zeros_like(offered)
    prices[:, gpus] = 1.0
    least, sale = float("inf"), count[:, None] * offered
    for step in range(STEPS):
        gain = np.where(admits, wanted[:, gpus] - prices @ wanted.T, 0.0)
        best = np.maximum(gain.max(axis=0), 0.0)
        least = min(least, float((sale * prices).sum() + many @ best))
        buyers = (gain == best) & (best > 0)
        bought = (buyers * (many / np.maximum(buyers.sum(axis=0), 1))) @ wanted
        slope = (sale - bought) * unit  # in prices that count in units
        prices = np.maximum(prices - STRIDE / (1 + step) ** 0.5 * unit * slope / max(float(np.linalg.norm(slope)), 1e-12), 0.0)
    return least
