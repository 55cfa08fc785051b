"""Measures how long the layers of a model take on a GPU type and how much memory they need, for
a ModelProfile (docs/training.md, "Profiles"): Metis, 4.3; AutoHet, III.D.

  rounds     whether times repeat
  result     what was measured, and its compact form
  document   ModelProfile objects, made and merged
  bench      the layers
  stopwatch, times, memory   what is measured of them
  worker     one rank; degrees, measure   all of them

The first three need no torch, nor does `python3 -m heterotrain.profile merge`.
"""
