package main

import (
	"fmt"
	"os"
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// gitVersion is the version that the program was built with. It is set before version.SetDynamicVersion, which accepts no other patch
// release than this.
//
//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

// stampVariable is the variable of the environment that names the version which a component reports: another patch release of the same
// minor version. The code stays that of the version that was built; each minor version is a program of its own.
const stampVariable = "LAB_KUBERNETES_VERSION"

// stamp makes the program report the version of the environment. A version of another minor would change which features are on, so it is
// not taken, and the log says so.
func stamp() error {
	wanted := os.Getenv(stampVariable)
	switch {
	case wanted == "" || wanted == gitVersion:
		return nil
	case minor(wanted) != minor(gitVersion):
		fmt.Fprintf(os.Stderr, "lab: %s is asked for; this is %s, and reports that. If there is a tool of that minor version, build it "+
			"and start the lab again: lab tools kube-%s\n", wanted, gitVersion, strings.TrimPrefix(minor(wanted), "v"))
		return nil
	}
	gitVersion = wanted
	return version.SetDynamicVersion(wanted)
}

// minor is major and minor of a version, e.g. v1.35.
func minor(v string) string {
	return v[:max(0, strings.LastIndex(v, "."))]
}
