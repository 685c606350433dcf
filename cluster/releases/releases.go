// Package releases knows the minor releases of the projects that a cluster is made of: until when each is supported, and what goes with it.
//
// The checks of a stack file, the plan of an upgrade and docs/versions.md read this one table. A release that is newer than the table is
// treated like its newest release, so that a missing row refuses nobody a release.
package releases

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Project is a project with minor releases.
type Project struct {
	Name   string
	Policy string // what is supported
	Source string // where the policy, the dates and the pairs are documented
	// Only the newest release is supported, and the next one comes within weeks: a release that is newer than the table is no news.
	Rolling bool
	Minors  []Minor
}

// Minor is a minor release.
type Minor struct {
	Minor string   // such as 1.14
	Ended string   // last day of support, such as 2026-04-27; "" if no date is known
	With  []Fit    // what it goes with
	Notes []string // what else a reader of the table wants to know
}

// Fit are the releases of another project with which a minor release goes.
type Fit struct {
	Project     string // its name
	From, Until string // minor releases, or a release such as 1.6.1; both included
	Refused     bool   // others do not work; otherwise they are not tested
}

// Standing is how a version stands to the releases of its project.
type Standing int

// The standings of a version.
const (
	Supported Standing = iota
	Ended              // known, and out of support
	Older              // than all releases in the table
	Newer              // than all releases in the table
)

// Find returns the minor release of a version, with or without a leading v, and how it stands on a day. For a release that is not in the
// table, it returns the nearest release in it.
func (p Project) Find(version string, day time.Time) (Minor, Standing) {
	of := MinorOf(version)
	at, found := slices.BinarySearchFunc(p.Minors, of, func(m Minor, of string) int { return compare(m.Minor, of) })
	switch {
	case found && p.Minors[at].Ended != "" && p.Minors[at].Ended < day.Format(time.DateOnly):
		return p.Minors[at], Ended
	case found:
		return p.Minors[at], Supported
	case at == 0:
		return p.Minors[0], Older
	case at < len(p.Minors): // a gap, which no table of these projects has
		return p.Minors[at-1], Older
	}
	return p.Minors[len(p.Minors)-1], Newer
}

// Newest returns the newest minor release, such as 1.14.
func (p Project) Newest() string { return p.Minors[len(p.Minors)-1].Minor }

// Oldest returns the oldest minor release in the table.
func (p Project) Oldest() string { return p.Minors[0].Minor }

// Fits returns with which releases of another project a version goes, and whether the given one is among them. A version that is newer than
// the table goes with everything newer than what the table's newest release goes with. Without a row about the other project, everything
// fits.
func (p Project) Fits(version string, other Project, otherVersion string) (Fit, bool) {
	m, standing := p.Find(version, time.Time{})
	for _, fit := range m.With {
		if fit.Project != other.Name {
			continue
		}
		if standing == Newer {
			fit.Until = ""
		}
		return fit, fit.covers(otherVersion)
	}
	return Fit{}, true
}

func (f Fit) covers(version string) bool {
	low := MinorOf(version)
	if strings.Count(f.From, ".") > 1 {
		low = version
	}
	return compare(low, f.From) >= 0 && (f.Until == "" || compare(MinorOf(version), f.Until) <= 0)
}

// String returns the releases in words: 1.32 to 1.37.
func (f Fit) String() string {
	switch {
	case f.Until == "":
		return f.From + " and later"
	case f.From == f.Until:
		return f.From
	case MinorOf(f.From) == f.Until:
		return f.From + " or a later patch release"
	}
	return fmt.Sprintf("%s to %s", f.From, f.Until)
}

// MinorOf returns the first two numbers of a version, such as 1.14.
func MinorOf(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// compare compares two versions, with or without a leading v.
func compare(a, b string) int {
	return semver.Compare("v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v"))
}
