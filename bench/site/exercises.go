package site

import (
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// exercisesName is the page that lists the exercises.
const exercisesName = "exercises.html"

// An exercise is a page of its own, apart from the chapters.
type exercise struct {
	*page
	number int
	base   string  // the stage that it starts from
	named  []*page // pages that lead to it, in their order
}

// readExercises reads the exercises' texts, in their order.
func readExercises(root string) (all []*exercise, err error) {
	files, err := fs.Glob(os.DirFS(root), "docs/workshop/exercises/[0-9]*/EXERCISE.md")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(os.DirFS(root), file)
		if err != nil {
			return nil, err
		}
		about, err := fs.ReadFile(os.DirFS(root), path.Join(path.Dir(file), "exercise.yaml"))
		if err != nil {
			return nil, err
		}
		var properties struct{ Title, Base string } // of those that package workshop knows
		if err := yaml.Unmarshal(about, &properties); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		digits, _, _ := strings.Cut(path.Base(path.Dir(file)), "-")
		number, err := strconv.Atoi(digits)
		if err != nil || properties.Title == "" {
			return nil, fmt.Errorf("%s: want a folder such as 07-prefix, and a title", file)
		}
		title := fmt.Sprintf("Exercise %d · %s", number, properties.Title)
		p := &page{source: file, out: fmt.Sprintf("exercise-%d.html", number), firstLine: 1, text: string(text), Title: title, Short: title}
		all = append(all, &exercise{page: p, number: number, base: properties.Base})
	}
	return all, nil
}

var (
	// pieces are what a page is made of: what keeps no further link, code, tags, and text.
	pieces = regexp.MustCompile(`(?s)<(?:a\b.*?</a>|pre\b.*?</pre>|svg\b.*?</svg>|summary\b.*?</summary>|h[1-6]\b.*?</h[1-6]>|code>[^<]*</code>|[^>]*>)|[^<]+`)
	// exerciseWords are one exercise or several: "exercise 16", "exercises 3, 4 or 8".
	exerciseWords   = regexp.MustCompile(`\b([Ee]xercises?\s+)(\d+)((?:(?:,|,? and|,? or)\s+\d+\b)*)`)
	exerciseCommand = regexp.MustCompile(`^<code>make [a-z]+(?: [A-Z]+=\S+)*? N=(\d+)\b`)
	digits          = regexp.MustCompile(`\d+`)
)

// linkExercises makes what a page says of exercises, "exercise 7" or make exercise N=7, links to
// them, and notes that it does.
func (b *builder) linkExercises(p *page, body string) string {
	up := strings.Repeat("../", strings.Count(p.out, "/"))
	link := func(number, text string) string {
		i := slices.IndexFunc(b.exercises, func(e *exercise) bool { return strconv.Itoa(e.number) == number })
		if i < 0 || b.exercises[i].page == p {
			return text
		}
		b.exercises[i].isNamed(p)
		return fmt.Sprintf(`<a href="%s%s">%s</a>`, up, b.exercises[i].out, text)
	}
	return pieces.ReplaceAllStringFunc(body, func(piece string) string {
		switch {
		case piece == "<code>make exercise</code>":
			return fmt.Sprintf(`<a href="%s%s">%s</a>`, up, exercisesName, piece)
		case strings.HasPrefix(piece, "<code>"):
			if found := exerciseCommand.FindStringSubmatch(piece); found != nil {
				return link(found[1], piece)
			}
		case piece[0] != '<':
			return exerciseWords.ReplaceAllStringFunc(piece, func(words string) string {
				found := exerciseWords.FindStringSubmatch(words)
				return link(found[2], found[1]+found[2]) + digits.ReplaceAllStringFunc(found[3], func(n string) string { return link(n, n) })
			})
		}
		return piece
	})
}

// isNamed notes that a page leads to the exercise.
func (e *exercise) isNamed(p *page) {
	if !slices.Contains(e.named, p) && p.Short != "" && p.source != e.source {
		e.named = append(e.named, p)
	}
}

// namedIn are links to the pages that lead to an exercise; other exercises are left out.
func (e *exercise) namedIn() string {
	var links []string
	for _, p := range e.named {
		if !strings.HasPrefix(p.out, "exercise-") {
			links = append(links, fmt.Sprintf(`<a href="%s">%s</a>`, p.out, html.EscapeString(p.Short)))
		}
	}
	return strings.Join(links, ", ")
}

// writeExercises writes a page for each exercise, and one that lists them.
func (b *builder) writeExercises(site *Site) (err error) {
	list := newGrid("exercises", "", "exercise", "starts from", "named in")
	for i, e := range b.exercises {
		list.row(strconv.Itoa(e.number), fmt.Sprintf(`<a href="%s">%s</a>`, e.out, html.EscapeString(e.shortTitle())), html.EscapeString(b.results.short(e.base)), e.namedIn())
		body := string(e.body) + fmt.Sprintf(`<p class="measured"><a href="%s">All exercises</a>. Named in: %s.</p>`, exercisesName, e.namedIn())
		v := view{Title: e.Title, Body: template.HTML(body), Site: b.chapters(nil), Rungs: b.rungs(nil), Mine: b.mine.any()}
		if i > 0 {
			v.Previous = &chapterLink{Href: b.exercises[i-1].out, Title: b.exercises[i-1].Title}
		}
		if i+1 < len(b.exercises) {
			v.Next = &chapterLink{Href: b.exercises[i+1].out, Title: b.exercises[i+1].Title}
		}
		if site.Files[e.out], err = v.page(); err != nil {
			return err
		}
		site.pages = append(site.pages, e.page)
	}
	const intro = `<h1>Exercises</h1><p>Each starts from a stage, says what to reach, and is checked on your machine, where it also has hints: ` +
		`<code>make exercise N=1</code> lays one out, <code>make check N=1</code> says how far it is, <code>make hint N=1</code> gives one hint more each time. ` +
		`The <a href="workshop.html">workshop</a> makes a day of them.</p>`
	v := view{Title: "Exercises", Body: template.HTML(intro + list.String()), Site: b.chapters(nil), Rungs: b.rungs(nil), Mine: b.mine.any()}
	site.pages = append(site.pages, &page{out: exercisesName, Title: v.Title})
	site.Files[exercisesName], err = v.page()
	return err
}

// shortTitle is the title without its number.
func (e *exercise) shortTitle() string {
	_, title, _ := strings.Cut(e.Title, " · ")
	return title
}
