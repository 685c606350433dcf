package config

import (
	"fmt"
	"net/netip"
)

// validator checks a decoded stack, defaults filled in. It skips values that could not be read, for they are reported
// already, and goes on after a problem, to find all of them.
type validator struct {
	*Stack
	problems
	secretsElsewhere bool

	taken map[netip.Addr]string // address to the path that has it
}

func (v *validator) validate() {
	v.validateCluster()
	v.validateProxmox()
	v.validateNetwork()
	v.validateNodePools()
	v.validateTalos()
	v.validateVersions()
	v.validateCilium()
	v.validateCoreServices()
	v.validateGitOps()
	v.validateReadiness()
	v.validateSecrets()
}

func (v *validator) validateCluster() {
	const path = "cluster.name"
	switch name := v.Cluster.Name; {
	case !isLabel(name) || len(name) > maxClusterName:
		v.found(path, fmt.Sprintf("write at most %d of a-z, 0-9 and -, with a letter or digit at both ends", maxClusterName),
			"%s is not a cluster name for Cilium", name)
	case name == "default":
		v.found(path, "pick another", "default is the name that Cilium reserves for a cluster without id")
	}
	if id := v.Cluster.ID; id < 1 || id > maxClusterID {
		v.found("cluster.id", fmt.Sprintf("write a number from 1 to %d, another one for every cluster of a mesh", maxClusterID),
			"%d is not a cluster id for Cilium", id)
	}
}

func (v *validator) validateReadiness() {
	if v.Readiness.Timeout.Duration < minTimeout {
		v.found("readiness.timeout", "write at least "+minTimeout.String(), "%s is too short for any check", v.Readiness.Timeout)
	}
}
