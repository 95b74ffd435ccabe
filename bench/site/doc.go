// Package site builds the documentation: chapters beside the diffs that they
// explain, into one folder of plain files that needs no network.
//
// The text is Markdown with a few includes in double braces (docs/README.md
// lists them). Figures come from the results files in docs/data, diffs from the
// stage folders, and a build fails when either does not have what a chapter
// refers to.
package site
