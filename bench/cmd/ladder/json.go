package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// jsonFile is where a command's result goes as JSON: a file, "-" for standard output in place of
// the text, or "" for nowhere.
type jsonFile string

func (j *jsonFile) flag(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar((*string)(j), "json", "", "write "+what+" to this `file`, or with - to standard output in place of the text")
}

// text is where what is for people goes.
func (j jsonFile) text(cmd *cobra.Command) io.Writer {
	if j == "-" {
		return io.Discard
	}
	return cmd.OutOrStdout()
}

// write writes a result as one line.
func (j jsonFile) write(cmd *cobra.Command, result any) error {
	switch j {
	case "":
		return nil
	case "-":
		return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
	}
	f, err := os.Create(string(j))
	if err != nil {
		return err
	}
	err = json.NewEncoder(f).Encode(result)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
