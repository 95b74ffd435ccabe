package site

import (
	"path/filepath"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/lab"
	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

// local is what was measured on this machine, to stand beside our figures. Each part may be missing.
type local struct {
	ladder, peers *dataFiles
	profiles      *profile.WhereTable
	labs          map[string]*lab.Result // by name
}

// LabFile is the name of the file in bench/out that has the newest result of a lab.
func LabFile(name string) string { return "lab-" + name + ".json" }

// readLocal reads what the runs of this machine have left: run is that of the ladder, and the others
// lie beside it.
func (b *builder) readLocal(run string) local {
	folder := filepath.Dir(run)
	read := func(file string, fits func(d *results.Document) bool) *dataFiles {
		d, err := results.Read(file)
		if err != nil || d.Ended != results.Complete || !fits(d) {
			return nil
		}
		return &dataFiles{stages: b.stages, documents: []*results.Document{d}, files: []string{filepath.Base(file)}, named: map[string]*dataFiles{}}
	}
	l := local{labs: map[string]*lab.Result{}}
	l.ladder = read(run, (*results.Document).IsLadder)
	l.peers = read(filepath.Join(folder, peersName+".json"), func(*results.Document) bool { return true })
	if w, err := profile.ReadWhere(filepath.Join(folder, "where-hello.json")); err == nil {
		l.profiles = w
	}
	for _, each := range b.labs.all {
		if r, err := lab.ReadResult(filepath.Join(folder, LabFile(each.Name))); err == nil {
			l.labs[each.Name] = r
		}
	}
	return l
}

// any says whether anything was measured.
func (l local) any() bool {
	return l.ladder != nil || l.peers != nil || len(l.labs) > 0
}

// where is what a request costs a server, in µs of CPU as the ladder has measured it, and the share
// of it that the profile found in a category; 0 where either is missing.
func (l local) where(server, workload, category string) (price, share float64) {
	if l.ladder == nil || l.profiles == nil || l.profiles.Workload != workload {
		return 0, 0
	}
	row, _ := l.ladder.documents[0].Row(server, workload)
	i := slices.IndexFunc(l.profiles.Servers, func(s profile.WhereServer) bool { return s.Server == server })
	if i < 0 {
		return 0, 0
	}
	for _, r := range l.profiles.Servers[i].Rows {
		if r.Category == category {
			share = r.Share
		}
	}
	return row.ServerCPUMicros.Median, share
}

// lab is what say says of a way, "" if it was not measured.
func (l local) lab(name, of, way string, say func(lab.CaseResult, lab.WayResult) string) string {
	r := l.labs[name]
	if r == nil {
		return ""
	}
	c, _ := r.Case(of)
	i := slices.IndexFunc(c.Ways, func(w lab.WayResult) bool { return w.Name == way })
	if i < 0 {
		return ""
	}
	return say(c, c.Ways[i])
}

// beside puts what was measured on this machine, if it was, below ours in a cell of a table.
func beside(mine string) string {
	if mine == "" {
		return ""
	}
	return `<span class="mine" title="on this machine"><br>` + mine + `</span>`
}
