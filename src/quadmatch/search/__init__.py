"""Compiled search for the best match, one pair of graphs after the other: the default of `match_graphs`.

Every pair becomes one problem: maximise Σ_k ⟨F_k, P S_k Pᵀ⟩ + ⟨L, P⟩ over permutations P, with "first"
matrices F, "second" matrices S and a linear term L (`problem`). The parts look for a better permutation of
such a problem: `relaxation` from far away, `exchange` nearby, `backtracking` everywhere in small graphs.
`strategy` combines them. Pairs are never mixed, so neither padding nor batch mates can change a match.
Imported when first needed.
"""
