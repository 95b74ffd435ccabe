package routes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/lab/input"
)

// sizes are how many routes there are. The larger ones contain the smaller.
var sizes = []int{10, 100, 1000}

type way struct {
	name string
	Router
}

func ways(n int) []way {
	routes := input.Targets(n)
	return []way{
		{"map", NewMap(routes)},
		{"switch", switches[n]},
		{"tree", NewTree(routes)},
		{"perfect", NewPerfect(routes)},
	}
}

// switches are those of so many routes. A thousand cases are not for reading, so they do not lie in
// the repository: TestMain builds this test again, with a generated file that sets switches.
var switches map[int]Switch

func TestMain(m *testing.M) {
	if switches != nil {
		os.Exit(m.Run())
	}
	code, err := runWithSwitches()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runWithSwitches becomes a test that has the switches, and returns its exit code. Within a lab, it
// is built once.
func runWithSwitches() (int, error) {
	folder := os.Getenv("LADDER_LAB_FOLDER") // lab.FolderVariable
	if folder == "" {
		var err error
		if folder, err = os.MkdirTemp("", "switches"); err != nil {
			return 0, err
		}
		defer os.RemoveAll(folder)
	}
	program := filepath.Join(folder, "switches.test")
	if _, err := os.Stat(program); err != nil {
		if err := buildWithSwitches(program); err != nil {
			return 0, err
		}
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func buildWithSwitches(program string) error {
	var code bytes.Buffer
	code.WriteString("package routes\n\nfunc init() {\nswitches = map[int]Switch{\n")
	for _, n := range sizes {
		fmt.Fprintf(&code, "%d: func(path []byte) int {\nswitch string(path) {\n", n)
		for i, route := range input.Targets(n) {
			fmt.Fprintf(&code, "case %q:\nreturn %d\n", route, i)
		}
		code.WriteString("}\nreturn None\n},\n")
	}
	code.WriteString("}\n}\n")
	here, err := filepath.Abs("switches_test.go")
	if err != nil {
		return err
	}
	file, overlay := program+".go", program+".json"
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {here: file}})
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(file, code.Bytes(), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return err
	}
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-buildvcs=false", "-overlay", overlay, "-o", program, ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// asked returns what n requests ask for: some routes much more often than others, one in twenty none.
// Equal paths are the same bytes: as in a server, where the path has just been read, they are in a cache.
func asked(routes []string, n int) [][]byte {
	random := rand.New(rand.NewPCG(5, 6))
	zipf := rand.NewZipf(random, 1.1, 4, uint64(len(routes)-1))
	known, unknown := make([][]byte, len(routes)), make([][]byte, len(routes))
	for i, route := range routes {
		known[i], unknown[i] = []byte(route), []byte(route+"/favicon.ico")
	}
	paths := make([][]byte, n)
	for i := range paths {
		route := zipf.Uint64()
		paths[i] = known[route]
		if random.IntN(20) == 0 {
			paths[i] = unknown[route]
		}
	}
	return paths
}

func TestSame(t *testing.T) {
	for _, n := range sizes {
		routes := input.Targets(n)
		for _, w := range ways(n) {
			for i, route := range routes {
				require.Equal(t, i, w.Find([]byte(route)), "%s of %d: %s", w.name, n, route)
			}
			for _, path := range []string{"", "/", "/api/v1/", routes[3] + "/", routes[3][:len(routes[3])-1], "/favicon.ico", "*"} {
				require.Equal(t, None, w.Find([]byte(path)), "%s of %d: %q", w.name, n, path)
			}
			for _, path := range asked(routes, 1000) {
				require.Equal(t, NewMap(routes).Find(path), w.Find(path), "%s of %d: %s", w.name, n, path)
			}
		}
	}
}

// TestNoCopy holds all ways to looking a view up as it is.
func TestNoCopy(t *testing.T) {
	path := []byte(input.Targets(1000)[777])
	for _, w := range ways(1000) {
		require.Zero(t, testing.AllocsPerRun(10, func() { w.Find(path) }), w.name)
	}
}

func BenchmarkRoutes(b *testing.B) {
	for _, n := range sizes {
		const requests = 1 << 16 // more than a CPU can learn by heart
		paths := asked(input.Targets(n), requests)
		for _, w := range ways(n) {
			b.Run(strconv.Itoa(n)+"/"+w.name, func(b *testing.B) {
				sum := 0
				for b.Loop() {
					for _, path := range paths {
						sum += w.Find(path)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/requests, "ns/op")
				if sum == 0 {
					b.Fatal("nothing found")
				}
			})
		}
	}
}
