package web

// pageTemplate is a folder's page: one style sheet inside it, no script, nothing
// from elsewhere.
const pageTemplate = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{range $i, $c := .Crumbs}}{{if $i}}/{{end}}{{$c.Name}}{{else}}{{.Title}}{{end}} · icefs</title>
<style>
:root {
  --ink: #1b2530; --faint: #5d6b7a; --line: #dfe5eb; --paper: #fff; --band: #f5f8fa;
  --accent: #0b62a8; --code: #eef3f7; --warn: #9a3412;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e3e9ef; --faint: #94a3b2; --line: #2b3640; --paper: #12181e; --band: #182028;
    --accent: #7cc0f8; --code: #1c252d; --warn: #fdba74;
  }
}
* { box-sizing: border-box }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main, header > div { max-width: 70rem; margin: 0 auto; padding: 0 1.5rem }
header { background: var(--band); border-bottom: 1px solid var(--line); padding: 1rem 0 }
header p { margin: 0; color: var(--faint); font-size: .85rem; overflow-wrap: anywhere }
h1 { margin: .1rem 0 0; font-size: 1.3rem; font-weight: 600; overflow-wrap: anywhere }
h1 span { color: var(--faint); font-weight: 400; padding: 0 .3rem }
a { color: var(--accent); text-decoration: none }
a:hover, a:focus { text-decoration: underline }
.real { margin: 1rem 0 0; color: var(--faint); overflow-wrap: anywhere }
table { width: 100%; border-collapse: collapse; margin: 1rem 0 }
th { text-align: left; font-size: .8rem; font-weight: 600; color: var(--faint); padding: .4rem .6rem; border-bottom: 1px solid var(--line) }
td { padding: .4rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
tbody tr:hover { background: var(--band) }
td.name { overflow-wrap: anywhere }
td.name a { font-weight: 500 }
td.name small { color: var(--faint); font-size: .85rem }
th.size, td.size { text-align: right; white-space: nowrap; width: 9rem }
th.time, td.time { white-space: nowrap; width: 12rem }
td.size, td.time { color: var(--faint); font-variant-numeric: tabular-nums }
td .note { font-style: italic }
td .bad { color: var(--warn) }
section { margin: 1.5rem 0 2rem }
h2 { font-size: .95rem; margin: 0 0 .4rem }
pre { margin: .4rem 0; padding: .6rem .8rem; background: var(--code); border-radius: .4rem; overflow-x: auto; font-size: .85rem }
nav.pages { margin: 1rem 0; display: flex; gap: 1.5rem; color: var(--faint) }
footer { color: var(--faint); font-size: .8rem; padding: 0 0 2rem }
td.about { color: var(--faint) }
@media (max-width: 40rem) {
  main, header > div { padding: 0 .8rem }
  th.time, td.time, th.size, td.size { width: auto }
  td.time { white-space: normal }
  th.about, td.about { display: none }
}
</style>
</head>
<body>
<header><div>
<p>icefs · <a href="{{.Root}}">{{.Title}}</a></p>
<h1>{{range $i, $c := .Crumbs}}{{if $i}}<span>/</span>{{end}}{{if eq $c.Ref "./"}}{{$c.Name}}{{else}}<a href="{{$c.Ref}}">{{$c.Name}}</a>{{end}}{{else}}All tables{{end}}</h1>
</div></header>
<main>
{{if or .Real .Facts}}<p class="real">{{with .Real}}Now <a href="{{.Ref}}">{{.Name}}</a>. {{end}}{{.Facts}}</p>
{{end}}<table>
<thead><tr><th scope="col">Name</th>{{if .Described}}<th scope="col" class="about">What it is</th>{{end}}<th scope="col" class="size">Size</th><th scope="col" class="time">Time (UTC)</th></tr></thead>
<tbody>
{{range .Rows}}<tr><td class="name"><a href="{{.Ref}}">{{.Name}}{{if eq .Kind "dir"}}/{{end}}</a>{{with .Target}} <small>→ {{.}}</small>{{end}}</td>{{if $.Described}}<td class="about">{{.About}}</td>{{end}}<td class="size">{{if .Size}}<span title="{{.Note}}">{{.Size}}</span>{{else if .Note}}<span class="note{{if ne .Note "not measured yet"}} bad{{end}}">{{.Note}}</span>{{end}}</td><td class="time">{{if .Time}}<time datetime="{{.Stamp}}">{{.Time}}</time>{{end}}</td></tr>
{{else}}<tr><td colspan="4">{{$.Empty}}</td></tr>
{{end}}</tbody>
</table>
{{if or .Previous .Next}}<nav class="pages">{{with .Previous}}<a href="{{.}}" rel="prev">← previous</a>{{end}}<span>from {{.First}} of {{.Total}}</span>{{with .Next}}<a href="{{.}}" rel="next">next →</a>{{end}}</nav>
{{end}}{{if .Read}}<section><h2>Read it</h2>
{{range .Read}}<pre>{{.}}</pre>
{{end}}</section>
{{end}}<footer>Read-only. Paths below snapshots/ never change.</footer>
</main>
</body>
</html>
`
