"""The report of a session or round as one page: kev's own report, and beside it what a Snapshot knows.

gather     what the page is made from, read from the disk
markup     HTML as values in which text is always escaped; pure
charts     the plots as SVG; pure
page       the HTML page; pure
results    its tables of trials and criteria; pure
rounds     what came out of the rounds; pure
markdown   the same as Markdown; pure
command    `kevtui report`
"""
