package suite

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are this module's packages from the bottom up. A package imports only from below its own layer.
var layers = [][]string{
	{"shared/netpoll", "shared/http1", "shared/topology", "shared/testenv", "bench/stats", "bench/console", "bench/typecheck", "bench/lab/input"},
	{"shared/app"},
	{"shared/serve", "bench/workload"},
	{"shared/harness", "bench/load"},
	{"shared/suite", "bench/results"},
	{"shared/suite/differential", "bench/run", "bench/report"},
	stages,
	{"bench/workshop/internal/witness"},
	{"bench/workshop/internal/grade"},
	{"bench/guard", "bench/profile", "bench/workshop"},
	{"bench/lab", labs},
	{"bench/site"}, // shows what profile recorded
	{"bench/cmd/ladder"},
}

// TestLayers holds all imports within the module to one direction: the command, its features, what measures,
// the stages' contract.
func TestLayers(t *testing.T) {
	require.Empty(t, checkLayers("../.."))
}

// checkLayers returns what is wrong with the packages under root, a line for each flaw.
func checkLayers(root string) []string {
	var flaws []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), "_") || strings.HasPrefix(entry.Name(), ".") || name == "work"):
			return fs.SkipDir // no packages for the go command, or a learner's
		case entry.IsDir() && name != ".":
			if _, err := os.Stat(filepath.Join(root, name, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
			return nil
		case path.Ext(name) != ".go":
			return nil
		}
		imported, err := importsOf(filepath.Join(root, name))
		if err != nil {
			return err
		}
		flaws = append(flaws, checkFile(name, imported)...)
		return nil
	})
	if err != nil {
		flaws = append(flaws, err.Error())
	}
	return flaws
}

// cobra makes the command line, which is the command's business alone.
const cobra = "github.com/spf13/cobra"

// importsOf lists what a file imports: cobra, and packages of this module from its root.
func importsOf(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var imported []string
	for _, spec := range parsed.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if inside, ok := strings.CutPrefix(full, module+"/"); ok {
			imported = append(imported, inside)
		} else if full == cobra {
			imported = append(imported, full)
		}
	}
	return imported, nil
}

// labs stands for every package of a folder: one for each lab.
const labs = "bench/labs"

// layerOf is a package's place in layers, -1 if it has none.
func layerOf(pkg string) int {
	if path.Dir(pkg) == labs {
		pkg = labs
	}
	return slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, pkg) })
}

// checkFile holds a file to the layers, name and imports given from the module's root.
func checkFile(name string, imported []string) []string {
	pkg := path.Dir(name)
	own := layerOf(pkg)
	if own < 0 {
		return []string{fmt.Sprintf("%s: the package %s has no place in the layers", name, pkg)}
	}
	var flaws []string
	for _, other := range imported {
		below := layerOf(other)
		switch {
		case other == cobra && pkg == "bench/cmd/ladder":
			continue
		case strings.HasSuffix(name, "_test.go") && (other == pkg || other == "shared/suite"):
			continue
		case !strings.HasPrefix(pkg, "bench/") && strings.HasPrefix(other, "bench/"):
		case strings.HasPrefix(other, "shared/suite") && !strings.HasPrefix(pkg, "bench/workshop"):
			// It is for tests and graders alone.
		case below >= 0 && below < own:
			continue
		}
		flaws = append(flaws, fmt.Sprintf("%s may not import %s", name, other))
	}
	return flaws
}

func TestLayerRules(t *testing.T) {
	for _, one := range []struct {
		file, imported string
		may            bool
	}{
		{"bench/cmd/ladder/root.go", "bench/site", true},
		{"bench/site/page.go", "bench/cmd/ladder", false},
		{"bench/site/page.go", "bench/profile", true},
		{"bench/profile/flame.go", "bench/site", false},
		{"bench/profile/flame.go", "bench/workshop", false},
		{"bench/profile/flame.go", "bench/run", true},
		{"bench/run/server.go", "bench/profile", false},
		{"bench/run/server.go", "bench/report", false}, // what measures does not know what prints
		{"bench/load/load.go", "shared/netpoll", true},
		{"bench/cmd/ladder/root.go", cobra, true},
		{"bench/profile/flame.go", cobra, false},
		{"shared/netpoll/poller.go", "shared/http1", false},
		{"shared/suite/server.go", "bench/stats", false},
		{"shared/app/app.go", "bench/stats", false},
		{"shared/app/app_test.go", "shared/app", true},
		{"shared/serve/run_linux_test.go", "shared/suite", true},
		{"shared/serve/serve.go", "shared/suite", false},
		{"bench/workshop/check.go", "shared/suite", true},
		{"bench/run/server.go", "shared/suite", false},
		{"bench/labs/locks/locks.go", "shared/http1", true},
		{"bench/lab/measure.go", "bench/site", false},
		{"stage0-naive/conn.go", "shared/netpoll", true},
		{"stage0-naive/stage_test.go", "shared/suite", true},
		{"stage0-naive/conn.go", "stage1-reuseport", false},
		{"stage0-naive/stage_test.go", "bench/stats", false},
	} {
		require.Equal(t, one.may, len(checkFile(one.file, []string{one.imported})) == 0, "%s imports %s", one.file, one.imported)
	}
	require.Equal(t, []string{"docs/site/page.go: the package docs/site has no place in the layers"}, checkFile("docs/site/page.go", nil))
}
