package grade

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("router-measured", "measurement.yaml says what was measured, and what follows from it", routerMeasured)
	behaviour("reads-measured", "measurement.yaml says what was measured, and what follows from it", readsMeasured)
	behaviour("small-first", "the first read after a wait asks for 256 bytes at most", watching(smallFirst))
	behaviour("routes", "every route is found by its name, and no other", talking(routes))
	special["calls for any route"] = specialFigure{"answer in the files of this exercise", callsForAnyRoute}
	special["statements for any route"] = specialFigure{"answer in the files of this exercise", statementsForAnyRoute}
}

// ofAnswers are the behaviours that are about what the learner has written about the server, not about the server.
var ofAnswers = map[string]bool{"router-measured": true, "reads-measured": true}

// OfAnswers says whether a check is about what is written in measurement.yaml. It holds only when the rest has been
// measured, so that measuring must not wait for it.
func OfAnswers(check string) bool { return ofAnswers[check] }

// Measured is what a comparison of the learner's server with the start came to: the ratio of requests per second, as the
// median of so many rounds, and the ends of its interval.
type Measured struct {
	Rounds int     `json:"rounds"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// rounding is how far a figure may lie from the one that was measured: two digits behind the point are enough.
const rounding = 0.0051

// as says whether r is what was measured.
func (m Measured) as(r ratio) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= rounding }
	return near(m.Median, r.Median) && near(m.Low, r.Low) && near(m.High, r.High)
}

// wasMeasured holds a ratio that is written down against those that were measured with a workload.
func (s *Subject) wasMeasured(workload string, rounds int, r ratio) error {
	if s.Measured == nil {
		return nil
	}
	all := s.Measured[workload]
	if len(all) == 0 {
		return fmt.Errorf("this code was not measured with %[1]s yet: make check with its N=, MEASURE=1 and ARGS=\"--workload %[1]s\" measures", workload)
	}
	m := all[len(all)-1]
	if !slices.ContainsFunc(all, func(m Measured) bool { return m.as(r) }) {
		return fmt.Errorf("%s: what was measured is %.3f (%.3f to %.3f), and not %v (%v to %v)", workload, m.Median, m.Low, m.High, r.Median, r.Low, r.High)
	}
	// With two workloads one of them may have had more.
	for _, all := range s.Measured {
		if slices.ContainsFunc(all, func(m Measured) bool { return m.Rounds == rounds }) {
			return nil
		}
	}
	return fmt.Errorf("%d rounds are said to be measured, and there were %d", rounds, m.Rounds)
}

// answersFile is what the learner writes beside code.
const answersFile = "measurement.yaml"

// ratio is one comparison, as the ladder prints it.
type ratio struct {
	Median  float64 `yaml:"median"`
	Low     float64 `yaml:"low"`
	High    float64 `yaml:"high"`
	Verdict string  `yaml:"verdict"`
}

const (
	faster     = "faster"
	slower     = "slower"
	cannotTell = "cannot tell"
	leastWords = 30
)

// check says what is wrong with a ratio and with what is made of it.
func (r ratio) check(name string) error {
	switch {
	case r.Median == 0:
		return fmt.Errorf("%s is not filled in", name)
	case !(r.Low > 0 && r.Low <= r.Median && r.Median <= r.High):
		return fmt.Errorf("%s: the median, %v, does not lie between low and high, %v and %v", name, r.Median, r.Low, r.High)
	case r.High > 20 || r.Low < 0.05:
		return fmt.Errorf("%s: from %v to %v is no ratio that this change can have", name, r.Low, r.High)
	}
	want := cannotTell
	switch {
	case r.Low > 1:
		want = faster
	case r.High < 1:
		want = slower
	}
	if r.Verdict != faster && r.Verdict != slower && r.Verdict != cannotTell {
		return fmt.Errorf("%s: the verdict is %q, and must be %q, %q or %q", name, r.Verdict, faster, slower, cannotTell)
	}
	// A difference within the noise floor cannot be told, whatever its interval says.
	if r.Verdict != want && r.Verdict != cannotTell {
		return fmt.Errorf("%s: an interval from %v to %v does not say %q", name, r.Low, r.High, r.Verdict)
	}
	return nil
}

// readAnswers reads the file; what it has too much is a mistake as well.
func (s *Subject) readAnswers(into any) error {
	text, ok := s.Own[answersFile]
	if !ok {
		return fmt.Errorf("%s is missing", answersFile)
	}
	if bytes.Equal(text, s.Start[answersFile]) {
		return errors.New("it is still as it was laid out")
	}
	if err := harness.DecodeYAML(text, into); err != nil {
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}

func ownWords(name, text string) error {
	if n := len(strings.Fields(text)); n < leastWords {
		return fmt.Errorf("%s has %d words: say it in %d or more", name, n, leastWords)
	}
	return nil
}

func routerMeasured(s *Subject) error {
	var m struct {
		Rounds        int     `yaml:"rounds"`
		Hello         ratio   `yaml:"hello"`
		RouterPercent float64 `yaml:"router_percent"`
		Ceiling       float64 `yaml:"ceiling"`
		Conclusion    string  `yaml:"conclusion"`
	}
	if err := s.readAnswers(&m); err != nil {
		return err
	}
	if m.Rounds < 6 {
		return fmt.Errorf("%d rounds are too few for an interval: six or more", m.Rounds)
	}
	if err := m.Hello.check("hello"); err != nil {
		return err
	}
	if err := s.wasMeasured("hello", m.Rounds, m.Hello); err != nil {
		return err
	}
	if m.RouterPercent <= 0 || m.RouterPercent > 50 {
		return fmt.Errorf("router_percent is %v: a profile of the start says how much of its CPU the router takes", m.RouterPercent)
	}
	if want := 1 / (1 - m.RouterPercent/100); math.Abs(m.Ceiling-want) > 0.011 {
		return fmt.Errorf("ceiling is %v: if %v%% cost nothing, the server would be %.3f times as fast", m.Ceiling, m.RouterPercent, want)
	}
	return ownWords("conclusion", m.Conclusion)
}

func readsMeasured(s *Subject) error {
	var m struct {
		Rounds       int     `yaml:"rounds"`
		ReadsHello   float64 `yaml:"reads_hello"`
		ReadsBrowser float64 `yaml:"reads_browser"`
		Hello        ratio   `yaml:"hello"`
		Browser      ratio   `yaml:"browser"`
		Keep         string  `yaml:"keep"`
		Why          string  `yaml:"why"`
	}
	if err := s.readAnswers(&m); err != nil {
		return err
	}
	if m.Rounds < 6 {
		return fmt.Errorf("%d rounds are too few for an interval: six or more", m.Rounds)
	}
	for _, counted := range []struct {
		of   string
		said float64
	}{{"hello", m.ReadsHello}, {"browser", m.ReadsBrowser}} {
		costs, err := s.measure(counted.of)
		if err != nil {
			return err
		}
		if is := costs.counters["reads"]; math.Abs(is-counted.said) > 0.06 {
			return fmt.Errorf("reads_%s is %v, and this server makes %s reads per request", counted.of, counted.said, number(is))
		}
	}
	if err := m.Hello.check("hello"); err != nil {
		return err
	}
	if err := m.Browser.check("browser"); err != nil {
		return err
	}
	if err := s.wasMeasured("hello", m.Rounds, m.Hello); err != nil {
		return err
	}
	if err := s.wasMeasured("browser", m.Rounds, m.Browser); err != nil {
		return err
	}
	if m.Keep != "small" && m.Keep != "large" {
		return fmt.Errorf("keep is %q, and must be \"small\" or \"large\"", m.Keep)
	}
	return ownWords("why", m.Why)
}

// smallFirst watches how much room the first read after a wait has.
func smallFirst(server *Server) error {
	l, err := loadByName("browser")
	if err != nil {
		return err
	}
	c, err := server.dial()
	if err != nil {
		return err
	}
	if err := drive([]*connection{c}, l, 50); err != nil {
		return err
	}
	if room := server.record.firstRoom(); room > 256 {
		return fmt.Errorf("it has room for %d bytes", room)
	}
	return nil
}

// sites are paths that a router has to know, with the names of their routes.
func sites() (paths, names []string) {
	add := func(path, name string) { paths, names = append(paths, path), append(names, name) }
	add("/", "/")
	add("/api/status", "/api/status")
	add("/users/42", "/users/{id}")
	add("/bytes/100", "/bytes/{n}")
	for _, group := range []string{"orders", "items", "carts", "invoices", "customers", "reviews", "stores", "coupons", "returns", "shipments"} {
		add("/shop/"+group, "/shop/"+group)
		add("/shop/"+group+"/17", "/shop/"+group+"/{id}")
		add("/shop/"+group+"/17/history", "/shop/"+group+"/{id}/history")
		add("/shop/"+group+"/count", "/shop/"+group+"/count")
		add("/shop/"+group+"/17/other", "")
	}
	add("/shop", "")
	add("/shop/orders/", "")
	add("/shop/orders/17/history/1", "")
	add("/user/42", "")
	add("/users/", "")
	add("/users", "")
	return paths, names
}

func routes(c *connection) error {
	paths, names := sites()
	// A tree that looks at the fixed segment alone, and has no way back, finds nothing here.
	paths, names = append(paths, "/shop/orders/count/history"), append(names, "/shop/orders/{id}/history")
	for i, path := range paths {
		a, err := c.ask("GET " + path + " HTTP/1.1\r\nHost: a\r\nX-Route: yes\r\n\r\n")
		if err != nil {
			return err
		}
		if got := strings.Trim(a.Field("Etag"), `"`); got != names[i] {
			return fmt.Errorf("GET %s is taken for the route %q, not %q", path, got, names[i])
		}
	}
	return nil
}

func callsForAnyRoute(s *Subject) (float64, error) {
	e, err := s.perAnswer("any route", s.anyRoute)
	return e.calls, err
}

func statementsForAnyRoute(s *Subject) (float64, error) {
	e, err := s.perAnswer("any route", s.anyRoute)
	return e.statements, err
}

// anyRoute are all of them, with numbers that nobody knows beforehand, in any order.
func (s *Subject) anyRoute() []string {
	random := s.random("any route")
	paths, _ := sites()
	for i, path := range paths {
		for _, known := range []string{"/42", "/17"} {
			path = strings.Replace(path, known, fmt.Sprintf("/%d", random.IntN(100_000)), 1)
		}
		paths[i] = path
	}
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	return paths
}
