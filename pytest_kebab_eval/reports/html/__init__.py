"""`report.html`: the page, its index of queries, their details, the charts."""
