package main

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/console"
)

// commit is what this command was built from; make sets it.
var commit string

// The groups of subcommands in the help.
const (
	measureGroup  = "measure"
	lookGroup     = "look"
	readGroup     = "read"
	workshopGroup = "workshop"
	serveGroup    = "serve"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ladder",
		Short: "Measure what each step of the QPS ladder brings",
		Long: `Measure what each step of the QPS ladder brings.

Every server and every load generator is a process of its own. What is compared
is measured in the same round, and every ratio has its interval beside it.

Exit code 2 says that the command line was not understood, 1 that a check failed
or that something went wrong.

The shell completes subcommands, stages, workloads, exercises and wrong turns
after: source <(ladder completion bash) (or zsh, fish, powershell).`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("there is no subcommand %q: choose one of %s", args[0], strings.Join(names(cmd), ", "))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("ladder, commit {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true // the text above says it
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{measureGroup, "Measure", []*cobra.Command{newRun(), newCompare(), newPeers(), newScale(), newRate(), newNetwork(), newMix(), newGuard(), newGenerators(), newReport()}},
		{lookGroup, "Look where the time goes", []*cobra.Command{newWhere(), newFlame(), newSyscalls(), newAllocs(), newStat(), newWrongTurn(), newLab()}},
		{readGroup, "Read", []*cobra.Command{newDocs()}},
		{workshopGroup, "Workshop", []*cobra.Command{newWorkshop()}},
		{serveGroup, "Serve and drive by hand", []*cobra.Command{newServe(), newLoad(), newMerge(), newWorkloads()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title + ":"})
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
		}
		root.AddCommand(group.commands...)
	}
	understand(root)
	// Nothing of a help breaks within a word at 80 columns.
	cobra.AddTemplateFunc("add", func(a, b int) int { return a + b })
	cobra.AddTemplateFunc("fit", func(indent int, text string) string {
		return strings.TrimSpace(console.Paragraph(strings.Repeat(" ", indent), strings.Repeat(" ", indent), text))
	})
	root.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", console.Width),
		"{{rpad .Name .NamePadding }} {{.Short}}", "{{rpad .Name .NamePadding }} {{fit (add .NamePadding 3) .Short}}",
	).Replace(root.UsageTemplate()))
	cobra.AddTemplateFunc("refill", refill)
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), "{{. | trimTrailingWhitespaces}}", "{{. | refill}}", 1))
	return root
}

// listed is the beginning of a line of a list: a name, and blanks up to what is said of it.
var listed = regexp.MustCompile(`^  \S+ +`)

// refill breaks the lines of a text anew, so that they fit. A paragraph that begins with blanks
// keeps its lines.
func refill(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines := []string{strings.Join(strings.Fields(paragraph), " ")}
		if strings.HasPrefix(paragraph, " ") {
			lines = strings.Split(paragraph, "\n")
		}
		for i, line := range lines {
			lines[i] = strings.Join(console.Wrap(line, console.Width, strings.Repeat(" ", len(listed.FindString(line)))), "\n")
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return strings.TrimSpace(strings.Join(out, "\n\n"))
}

// names are those of a command's subcommands.
func names(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// version is the commit, with a mark when files have changed since, and what it was built with.
func version() string {
	revision := commit
	if info, ok := debug.ReadBuildInfo(); ok && revision == "" {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if revision = settings["vcs.revision"]; settings["vcs.modified"] == "true" {
			revision += "-dirty"
		}
	}
	return fmt.Sprintf("%s, %s %s/%s", cmp.Or(revision, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
