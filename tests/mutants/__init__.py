"""Breaks the product in chosen places, and shows which test notices each: mutation testing with mutants chosen by hand.

``make mutants`` runs this, ``mutants.run`` is its entry point, ``RESULTS.md`` its table.
"""
