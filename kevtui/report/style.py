"""How the page looks, on a light and on a dark screen; every pair of text and ground has a contrast of 4.5 or more."""

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--text:#1b1f24;--dim:#57606a;--rule:#d0d7de;--line:#0a58ca;
--good:#116329;--bad:#b3261e;--warn:#8a4b00}
@media (prefers-color-scheme:dark){:root{--ground:#0d1117;--text:#e6edf3;--dim:#9da7b3;--rule:#30363d;--line:#79b8ff;
--good:#56d364;--bad:#ff8177;--warn:#e3b341}}
body{background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif;margin:0}
main{max-width:64rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem}h2{font-size:1.2rem;border-bottom:1px solid var(--rule)}h3{font-size:1rem}
p,li,td,h1,h3{overflow-wrap:anywhere}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.2rem .7rem .2rem 0;border-bottom:1px solid var(--rule)}
code{font-size:.9em}.missing{color:var(--dim)}
.notice{border-left:4px solid var(--warn);padding-left:.7rem}
svg{width:100%;height:auto;max-width:60rem;display:block;margin:.5rem 0}
svg text{fill:var(--text);font:12px system-ui,sans-serif}
svg .grid{stroke:var(--rule)}svg .line{fill:none;stroke:var(--line);stroke-width:2}svg .dot{fill:var(--line)}
svg .limit{stroke:var(--bad);stroke-width:2}svg .reserve{stroke:var(--warn);stroke-dasharray:6 4}
svg .committed{stroke:var(--warn);stroke-width:4}
svg .interval{fill:var(--dim);opacity:.6}svg .interval.pass{fill:var(--good)}svg .interval.fail{fill:var(--bad)}
.pass,svg text.pass{color:var(--good);fill:var(--good)}.fail,svg text.fail{color:var(--bad);fill:var(--bad)}
svg text.missing{fill:var(--dim)}
@media print{section{break-inside:avoid}}
""".strip()
