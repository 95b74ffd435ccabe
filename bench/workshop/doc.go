// Package workshop is what the exercises run on: it lays out the code that a learner starts from,
// builds and grades what became of it, gives hints, shows the reference, and keeps track.
//
// An exercise is a folder in docs/workshop/exercises that holds only what differs from the stage it
// builds on, so that a fix to a stage reaches every exercise:
//
//	exercise.yaml    title, base stage, reference, files that may change, checks with their limits
//	EXERCISE.md      what you see, what to reach, what is out of bounds
//	hint-1.md …      one more each time, the last of them nearly the answer
//	_start/          files of the start that differ from the base; the underscore keeps the go command out
//	start.patch      the same as a patch, for small changes
//	_reference/      files of the reference that differ from the base (or the start), unless a stage is the reference
//	reference.patch  the same as a patch
//	wrong/*.patch    solutions that look right and must fail; each says which check finds it
//
// The learner's folder, work/NN-name, is a package of this module: it is built as it stands.
//
// What a server must do to pass is package grade's; flags and what is printed are the command's.
package workshop
