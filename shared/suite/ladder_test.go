package suite

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/qps-ladder/qps-ladder"

// stages are the ladder's steps in order.
var stages = []string{
	"stage0-naive", "stage1-reuseport", "stage2-conn-timer",
	"stage3-native-parser", "stage4-scatter-gather", "stage5-speculative-read",
}

// stageFiles are all the files of a stage; a stage has no others. The steps listed are those that a file is
// about: where it differs from the stage before, for that is the lesson. It may differ at no other step.
var stageFiles = map[string][]string{
	"main.go":     {},
	"server.go":   {"stage1-reuseport"},
	"loop.go":     {"stage1-reuseport", "stage5-speculative-read"},
	"conn.go":     {"stage5-speculative-read"},
	"idle.go":     {"stage2-conn-timer"},
	"request.go":  {"stage3-native-parser"},
	"head.go":     {"stage3-native-parser"},
	"response.go": {"stage4-scatter-gather"},

	"stage_test.go": stages, // each stage makes promises of its own
	"README.md":     stages,
}

// mayDiffer has the files that may differ at a step beside those that must: views may make it necessary.
var mayDiffer = map[string][]string{
	"stage5-speculative-read": {"request.go", "response.go"},
}

// TestLadder holds the stages to the rule that each is the one before it plus one optimisation.
func TestLadder(t *testing.T) {
	require.Empty(t, checkLadder("../.."))
}

// checkLadder returns what is wrong with the stages under root, a line for each flaw.
func checkLadder(root string) []string {
	var flaws []string
	for i, stage := range stages {
		found, err := readStage(root, stage)
		if err != nil {
			return append(flaws, err.Error())
		}
		for name := range found {
			if _, known := stageFiles[name]; !known {
				flaws = append(flaws, fmt.Sprintf("%s/%s: a stage has no such file", stage, name))
			}
		}
		for name := range stageFiles {
			if _, there := found[name]; !there {
				flaws = append(flaws, fmt.Sprintf("%s/%s is missing", stage, name))
			}
		}
		flaws = append(flaws, checkImports(stage, found)...)
		if i == 0 {
			continue
		}
		before, err := readStage(root, stages[i-1])
		if err != nil {
			return append(flaws, err.Error())
		}
		flaws = append(flaws, compareStages(stage, before, found)...)
	}
	slices.Sort(flaws)
	return flaws
}

// readStage reads the files of a stage, by their names below its folder.
func readStage(root, stage string) (map[string]string, error) {
	found := map[string]string{}
	folder := filepath.Join(root, stage)
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	return found, err
}

// compareStages holds a stage to the one before it.
func compareStages(stage string, before, after map[string]string) []string {
	var flaws []string
	for name, text := range after {
		old, there := before[name]
		if !there || stage == stages[0] {
			continue // missing files are another flaw
		}
		steps := stageFiles[name]
		same := text == old
		switch {
		case same && slices.Contains(steps, stage) && len(steps) < len(stages):
			flaws = append(flaws, fmt.Sprintf("%s/%s is the same as at the stage before, though the step is about it", stage, name))
		case !same && !slices.Contains(steps, stage) && !slices.Contains(mayDiffer[stage], name):
			flaws = append(flaws, fmt.Sprintf("%s/%s differs from the stage before: the step is not about it (line %d)", stage, name, firstDifference(old, text)))
		}
	}
	return flaws
}

// firstDifference is the number of the first line that is not the same.
func firstDifference(a, b string) int {
	first, second := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(first), len(second)) {
		if first[i] != second[i] {
			return i + 1
		}
	}
	return min(len(first), len(second)) + 1
}

// checkImports keeps system calls, unsafe and other people's packages out of the stages: what they do
// there would be counted nowhere.
func checkImports(stage string, files map[string]string) []string {
	var flaws []string
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), stage+"/"+name, text, parser.ImportsOnly)
		if err != nil {
			flaws = append(flaws, err.Error())
			continue
		}
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				flaws = append(flaws, err.Error())
			} else if !mayImport(name, path) {
				flaws = append(flaws, fmt.Sprintf("%s/%s may not import %s", stage, name, path))
			}
		}
	}
	return flaws
}

func mayImport(file, path string) bool {
	if inside, ok := strings.CutPrefix(path, module+"/"); ok {
		ofTests := strings.HasPrefix(inside+"/", "shared/suite/")
		return strings.HasPrefix(inside, "shared/") && (!ofTests || strings.HasSuffix(file, "_test.go"))
	}
	switch path {
	case "unsafe", "syscall", "net", "C":
		return false
	case "github.com/evanphx/wildcat":
		return file == "request.go"
	}
	first, _, _ := strings.Cut(path, "/")
	if strings.Contains(first, ".") {
		return strings.HasSuffix(file, "_test.go") && strings.HasPrefix(path, "github.com/stretchr/testify/")
	}
	return true // the standard library
}

// fakeLadder writes six stages that keep every rule.
func fakeLadder(t *testing.T) string {
	root := t.TempDir()
	versions := map[string]int{}
	for _, stage := range stages {
		require.NoError(t, os.Mkdir(filepath.Join(root, stage), 0o755))
		for name, steps := range stageFiles {
			if slices.Contains(steps, stage) && stage != stages[0] {
				versions[name]++
			}
			text := fmt.Sprintf("package main\n\nimport \"fmt\"\n\n// Version %d.\n", versions[name])
			require.NoError(t, os.WriteFile(filepath.Join(root, stage, name), []byte(text), 0o600))
		}
	}
	return root
}

func TestLadderRules(t *testing.T) {
	require.Empty(t, checkLadder(fakeLadder(t)))

	write := func(name, text string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
		}
	}
	remove := func(name string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) { require.NoError(t, os.RemoveAll(filepath.Join(root, name))) }
	}
	add := func(name, text string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) {
			old, err := os.ReadFile(filepath.Join(root, name))
			require.NoError(t, err)
			write(name, string(old)+text)(t, root)
		}
	}
	for name, one := range map[string]struct {
		change func(t *testing.T, root string)
		flaws  []string // what each flaw contains; none means that the change is allowed
	}{
		"a file that the step is not about": {
			add("stage2-conn-timer/conn.go", "\nvar x int\n"),
			[]string{"stage2-conn-timer/conn.go differs from the stage before: the step is not about it (line 7)",
				"stage3-native-parser/conn.go differs"},
		},
		"a comment": {
			add("stage5-speculative-read/head.go", "// Only a comment.\n"),
			[]string{"stage5-speculative-read/head.go differs"},
		},
		"main.go": {
			add("stage0-naive/main.go", "// Only a comment.\n"),
			[]string{"stage1-reuseport/main.go differs"},
		},
		"a step that changes nothing": {
			func(t *testing.T, root string) {
				old, err := os.ReadFile(filepath.Join(root, "stage3-native-parser/response.go"))
				require.NoError(t, err)
				write("stage4-scatter-gather/response.go", string(old))(t, root)
				write("stage5-speculative-read/response.go", string(old))(t, root)
			},
			[]string{"stage4-scatter-gather/response.go is the same"},
		},
		"what stage5 may touch": {
			func(t *testing.T, root string) {
				add("stage5-speculative-read/request.go", "// Other views.\n")(t, root)
				add("stage5-speculative-read/response.go", "// Other views.\n")(t, root)
			}, nil,
		},
		"what no other stage may touch": {
			add("stage4-scatter-gather/request.go", "// Other views.\n"),
			[]string{"stage4-scatter-gather/request.go differs"},
		},
		"promises and pages": {
			func(t *testing.T, root string) {
				add("stage2-conn-timer/README.md", "more\n")(t, root)
				add("stage2-conn-timer/stage_test.go", "// more\n")(t, root)
			}, nil,
		},
		"a file more": {
			write("stage3-native-parser/pool.go", "package main\n"),
			[]string{"stage3-native-parser/pool.go: a stage has no such file"},
		},
		"a folder more": {
			write("stage3-native-parser/inner/x.go", "package inner\n"),
			[]string{"stage3-native-parser/inner/x.go: a stage has no such file"},
		},
		"a file less": {
			remove("stage4-scatter-gather/idle.go"),
			[]string{"stage4-scatter-gather/idle.go is missing"},
		},
		"a stage less": {
			remove("stage4-scatter-gather"),
			[]string{"stage4-scatter-gather"},
		},
		"a file that is not Go": {
			write("stage0-naive/server.go", "nonsense\n"),
			[]string{"stage0-naive/server.go:1:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := fakeLadder(t)
			one.change(t, root)
			flaws := checkLadder(root)
			require.Len(t, flaws, len(one.flaws), "%q", flaws)
			for i, want := range one.flaws {
				require.Contains(t, flaws[i], want)
			}
		})
	}
}

func TestImportRules(t *testing.T) {
	for _, one := range []struct {
		file, path string
		may        bool
	}{
		{"conn.go", "io", true},
		{"request.go", "net/http", true},
		{"conn.go", module + "/shared/netpoll", true},
		{"stage_test.go", module + "/shared/suite", true},
		{"stage_test.go", "github.com/stretchr/testify/require", true},
		{"request.go", "github.com/evanphx/wildcat", true},
		{"conn.go", "github.com/evanphx/wildcat", false},
		{"conn.go", "github.com/stretchr/testify/require", false},
		{"conn.go", module + "/shared/suite", false},
		{"conn.go", module + "/shared/suite/differential", false},
		{"conn.go", module + "/stage0-naive", false},
		{"conn.go", module + "/bench/load", false},
		{"conn.go", "golang.org/x/sys/unix", false},
		{"conn.go", "syscall", false},
		{"conn.go", "unsafe", false},
		{"server.go", "net", false},
		{"server.go", "C", false},
	} {
		require.Equal(t, one.may, mayImport(one.file, one.path), "%s imports %s", one.file, one.path)
	}
	flaws := checkImports("stage0-naive", map[string]string{"loop.go": "package main\n\nimport (\n\t\"io\"\n\t\"unsafe\"\n)\n"})
	require.Equal(t, []string{"stage0-naive/loop.go may not import unsafe"}, flaws)
}
