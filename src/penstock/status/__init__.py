"""How a cluster is, as values: for `penstock cluster status`, and for every page that shows it.

`gathering` asks the brokers and may find one silent, `values` hold what was found, `judging` says
what is wrong with it. Judging is pure, so that every kind of trouble can be tested without making
it. How it looks is for whoever shows it.
"""
