"""One file a paper, each only names its parts."""

from __future__ import annotations

from functools import partial

from quadmatch.methods.attention import build_attention
from quadmatch.methods.bbgm import BBGM
from quadmatch.methods.cie import build_cie
from quadmatch.methods.dgm import build_compact, build_published
from quadmatch.methods.glmnet import build_glmnet
from quadmatch.methods.gmn import GMN
from quadmatch.methods.harg_ssvm import HARGSSVM
from quadmatch.methods.lcsgm import LCSGM
from quadmatch.methods.method import Method
from quadmatch.methods.ngm import NGM
from quadmatch.methods.pca import build_pca

QCDGM = "Gao, Wang, Xue, Yu, Xia: Deep Graph Matching under Quadratic Constraint, CVPR 2021"
BLACKBOX = "Rolínek et al.: Deep Graph Matching via Blackbox Differentiation of Combinatorial Solvers, ECCV 2020"
CIE = "Yu, Wang, Yan, Li: Learning Deep Graph Matching with Channel-Independent Embedding, ICLR 2020"
DEEP_LEARNING = "Zanfir, Sminchisescu: Deep Learning of Graph Matching, CVPR 2018"
GRAPH_LEARNING = "Jiang, Sun, Tang, Luo: GLMNet: Graph Learning-Matching Networks, arXiv 1911.07681"
NEURAL = "Wang, Yan, Yang: Neural Graph Matching Network, arXiv 1911.11308"
PCA_GM = "Wang, Yan, Yang: Learning Combinatorial Embedding Networks for Deep Graph Matching, ICCV 2019"
LEARNING_GRAPHS = "Cho, Alahari, Ponce: Learning Graphs to Match, ICCV 2013"
SOLVER = "Wang, Liu, Li, Jin, Hou, Ling: Learning Combinatorial Solver for Graph Matching, CVPR 2020"

OURS = "quadmatch, with parts of Rolínek et al. 2020, Sarlin et al. 2020, Lin et al. 2023 and others"

METHODS: dict[str, Method] = {
    "attention": Method(build_attention, OURS, "contrastive", small={"width": 16, "heads": 2, "layers": 2}),
    "dgm1": Method(partial(build_compact, "gcn"), QCDGM, "false_matching", small={"width": 16, "frequencies": 2}),
    "dgm2": Method(partial(build_compact, "spline"), QCDGM, "false_matching", small={"width": 16}),
    "dgm1_paper": Method(partial(build_published, "paper", "gcn"), QCDGM, "false_matching"),
    "dgm2_paper": Method(partial(build_published, "paper", "spline"), QCDGM, "false_matching"),
    "dgm1_released": Method(partial(build_published, "released", "gcn"), QCDGM, "false_matching"),
    "dgm2_released": Method(partial(build_published, "released", "spline"), QCDGM, "false_matching"),
    "pca": Method(build_pca, PCA_GM, "permutation", small={"width": 16}),
    "gmn": Method(GMN, DEEP_LEARNING, "offset"),
    "cie": Method(build_cie, CIE, "hungarian_attention", small={"width": 16}),
    "glmnet": Method(build_glmnet, GRAPH_LEARNING, "permutation", small={"width": 16}),
    "ngm": Method(NGM, NEURAL, "permutation"),
    "lcsgm": Method(LCSGM, SOLVER, "permutation", small={"blocks": 2}),
    "bbgm": Method(BBGM, BLACKBOX, "hamming", exact_gradient=False, small={"whole": 4, "width": 8}),
    "harg": Method(HARGSSVM, LEARNING_GRAPHS, "hamming", exact_gradient=False),
}
"""Methods by name. With an experiment's table `[constraint]`, method X is the papers' qc-X."""

__all__ = ["METHODS", "Method"]
