"""Search for the best match: the default of `match_graphs` and of `quadratic_assignment`.

Every pair becomes one problem: maximise Σ_k ⟨F_k, P S_k Pᵀ⟩ + ⟨L, P⟩ over permutations P, with "first"
matrices F, "second" matrices S and a linear term L (`problem`). The parts look for a better permutation:
`relaxation` from far away, `exchange` nearby, `backtracking` everywhere in small graphs. `strategy` combines
them for lists of graphs, `local_search` with `population` for one hard assignment. Pairs are never mixed, so
neither padding nor batch mates can change a match. Imported when first needed.
"""
