"""Numbers of the documentation that no record can hold: settings, limits, definitions, arithmetic, published ones.

What is left of a page without these, without its code and without what records give has no figure that was measured.
"""

STATED: dict[str, list[str]] = {
    "docs/beyond.md": ["40 % of the channels", "at most 98.0 on cars"],
    "docs/data.md": ["Validation is 10 % of", "About 1 % of keypoints lie outside"],
    "docs/design.md": ["2.5 times the multiply-adds and 1.6 times the storage"],
    "docs/features.md": ["takes 2.5 times the work", "at least every 30 seconds"],
    "docs/models.md": ["by 15 % of its longer side"],
    "docs/page.md": ["If that is more than 60 s,", "gives 10 s to what"],
    "docs/reproducing.md": [
        "its 95 % interval",
        "gives 68.96 to 69.47 on Pascal VOC",  # what its authors' code gives
        "(1 % on Pascal VOC)",
        "10 % of the training images",
        "the published 96.0",
    ],
    "docs/results.md": ["27 times the pairs on Willow and some 90 times on Pascal VOC"],
    "docs/scaling.md": ["at no more than 0.2 points of accuracy"],
    "docs/training.md": ["10 % of each category's training pictures"],
}
