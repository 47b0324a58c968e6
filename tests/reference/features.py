"""Methods that compare points, slowly and obviously right: dense gradients, all distances, one pass for each pick."""

import math
from itertools import permutations

import torch


def gradients(p, h):
    """BADGE's embeddings as its paper has them, [pool, classes · features]: (p - onehot(argmax p)) ⊗ h."""
    best = torch.nn.functional.one_hot(p.argmax(-1), p.shape[-1])
    return ((p - best)[:, :, None] * h[:, None, :]).flatten(1).double()


def squared_distances(a, b):
    """Σ (a - b)², one coordinate after the other."""
    return (a[:, None] - b[None]).square().sum(-1)


def seeding_probabilities(points, first, k, weights=None):
    """How likely each sequence of k centres is under k-means++, by definition; uniform where all distances are 0."""
    n = len(points)
    apart = squared_distances(points, points) * (1 if weights is None else weights[:, None])
    found = {}
    for rest in permutations([i for i in range(n) if i != first], k - 1):
        chance, chosen = 1.0, [first]
        for i in rest:
            d = apart[:, chosen].min(1).values
            left = [j for j in range(n) if j not in chosen]
            chance *= float(d[i] / d.sum()) if d.sum() > 0 else 1 / len(left)
            chosen.append(i)
        if chance:
            found[(first, *rest)] = chance
    assert math.isclose(sum(found.values()), 1)
    return found


def farthest_first(points, k, labelled=None):
    """Greedy k-centre: O(N²) distances, then k times the first of the farthest. Picks, and their distances."""
    apart = squared_distances(points, points)
    if labelled is None or len(labelled) == 0:
        nearest = torch.full((len(points),), math.inf, dtype=points.dtype)
        chosen = [int((points - points.mean(0)).square().sum(-1).argmin())]
    else:
        nearest = squared_distances(points, labelled).min(1).values
        chosen = [farthest(nearest, [])]
    distances = [float(nearest[chosen[0]])]
    while len(chosen) < k:
        nearest = torch.minimum(nearest, apart[:, chosen[-1]])
        chosen.append(farthest(nearest, chosen))
        distances.append(float(nearest[chosen[-1]]))
    return chosen, [math.sqrt(d) for d in distances]


def facilities(points, k, labelled=None):
    """Greedy facility location from the first point on: k - 1 times the first of those that lower the sum most."""
    apart = squared_distances(points, points)
    cost, chosen = apart[0], [0]
    if labelled is not None:
        cost = torch.minimum(cost, squared_distances(points, labelled).min(1).values)
    while len(chosen) < k:
        saved = (cost - apart).clamp_min(0).sum(1)
        chosen.append(farthest(saved, chosen))
        cost = torch.minimum(cost, apart[chosen[-1]])
    return chosen


def k_nearest(points, centres, n):
    """For each centre the n points of the smallest distances, the nearest first, ties by number."""
    apart = squared_distances(centres.double(), points.double())
    return [sorted(range(len(points)), key=lambda i: (float(row[i]), i))[:n] for row in apart]


def nearest_centre(points, centres):
    """The number of the nearest centre of each point, the first of those that tie."""
    return [near[0] for near in k_nearest(centres, points, 1)]


def cluster_margin(margins, clusters, k, candidates):
    """Cluster-Margin as its paper tells it: lists of candidates by cluster, sorted by length, one of each in turn.

    margins: p₁ - p₂ of each point. clusters: of each point. Ties go to the smaller margin, then to the smaller number.
    """
    best = sorted(range(len(margins)), key=lambda i: (margins[i], i))[:candidates]
    lists = {}
    for i in best:
        lists.setdefault(clusters[i], []).append(i)
    queues = sorted(lists.values(), key=lambda queue: (len(queue), best.index(queue[0])))
    picked = []
    while len(picked) < k:
        for queue in queues:
            if queue and len(picked) < k:
                picked.append(queue.pop(0))
    return picked


def farthest(distances, chosen):
    """The first of the largest that is not chosen yet."""
    return max((i for i in range(len(distances)) if i not in chosen), key=lambda i: (float(distances[i]), -i))
