package machineconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
)

// checkRelations refuses values that a component takes each by itself, and not together: with what the others have, or by default.
func (k *knowledge) checkRelations(a argued) {
	k.checkOIDC(a.flagsOf(k8s.APIServerID))
	for _, id := range []string{k8s.ControllerManagerID, k8s.SchedulerID} {
		k.checkLeadership(id, a.flagsOf(id))
	}
	k.checkElection(a.flagsOf(etcdID))
	k.checkImageGC(a.flagsOf(k8s.KubeletID), a.fields)
}

// flagsOf returns the values of a component's flags. Of one that is given several times, it is the last.
func (a argued) flagsOf(id string) map[string]string {
	flags := map[string]string{}
	for _, argument := range a.arguments[id] {
		flag, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		flags[strings.ReplaceAll(flag, "_", "-")] = value
	}
	return flags
}

func (k *knowledge) refuseFlag(id, flag, problem, remedy string) {
	k.refuse(componentParts[id]+".extraArgs."+flag, flag, problem, remedy)
}

// checkOIDC checks the flags of OpenID Connect: BuiltInAuthenticationOptions.Validate of Kubernetes, pkg/kubeapiserver/options.
func (k *knowledge) checkOIDC(flags map[string]string) {
	const issuer, client, file = "oidc-issuer-url", "oidc-client-id", "authentication-config"
	given := slices.DeleteFunc([]string{issuer, client, "oidc-ca-file", "oidc-groups-claim", "oidc-groups-prefix", "oidc-required-claim",
		"oidc-signing-algs", "oidc-username-claim", "oidc-username-prefix"}, func(flag string) bool { return flags[flag] == "" })
	if len(given) == 0 {
		return
	}
	for _, needed := range []string{issuer, client} {
		if flags[needed] == "" {
			k.refuseFlag(k8s.APIServerID, given[0], given[0]+" needs "+needed, "add it")
		}
	}
	if url := flags[issuer]; url != "" && !strings.HasPrefix(url, "https://") {
		k.refuseFlag(k8s.APIServerID, issuer, issuer+" has a value that "+k8s.APIServerID+" refuses", "write an https URL")
	}
	if flags[file] != "" {
		k.refuseFlag(k8s.APIServerID, file, file+" is given beside "+given[0], "keep one of the two ways")
	}
}

// checkLeadership checks the times of the election of a leader: ValidateLeaderElectionConfiguration of k8s.io/component-base.
func (k *knowledge) checkLeadership(id string, flags map[string]string) {
	const lease, renew = "leader-elect-lease-duration", "leader-elect-renew-deadline"
	if flags[lease]+flags[renew] == "" {
		return
	}
	long, err1 := time.ParseDuration(cmp.Or(flags[lease], "15s"))
	short, err2 := time.ParseDuration(cmp.Or(flags[renew], "10s"))
	if err1 == nil && err2 == nil && long <= short {
		k.refuseFlag(id, lastGiven(flags, lease, renew), fmt.Sprintf("%s is not longer than %s, which is 15s and 10s by default", lease, renew),
			"make it longer")
	}
}

// checkElection checks the times of etcd's election: Config.Validate of etcd, server/embed.
func (k *knowledge) checkElection(flags map[string]string) {
	const election, heartbeat = "election-timeout", "heartbeat-interval"
	if flags[election]+flags[heartbeat] == "" {
		return
	}
	timeout, err1 := strconv.ParseUint(cmp.Or(flags[election], "1000"), 0, 32)
	tick, err2 := strconv.ParseUint(cmp.Or(flags[heartbeat], "100"), 0, 32)
	if err1 == nil && err2 == nil && (timeout < 5*tick || timeout > 50000) {
		k.refuseFlag(etcdID, lastGiven(flags, election, heartbeat), election+" is less than five times "+heartbeat+", or more than 50000",
			"write five times "+heartbeat+" or more")
	}
}

// checkImageGC checks how full the disk is before images are removed, and after: ValidateKubeletConfiguration of Kubernetes.
func (k *knowledge) checkImageGC(flags map[string]string, fields map[string]any) {
	const highFlag, lowFlag, highField, lowField = "image-gc-high-threshold", "image-gc-low-threshold", "imageGCHighThresholdPercent",
		"imageGCLowThresholdPercent"
	value := func(flag, field string, otherwise int) int {
		if number, err := strconv.Atoi(cmp.Or(flags[flag], plainOf(fields[field]))); err == nil {
			return number
		}
		return otherwise
	}
	if value(lowFlag, lowField, 80) < value(highFlag, highField, 85) {
		return
	}
	part, item := componentParts[k8s.KubeletID]+".extraConfig.", lowField
	switch {
	case flags[highFlag] != "":
		part, item = componentParts[k8s.KubeletID]+".extraArgs.", highFlag
	case flags[lowFlag] != "":
		part, item = componentParts[k8s.KubeletID]+".extraArgs.", lowFlag
	case fields[highField] != nil:
		item = highField
	}
	k.refuse(part+item, item, "images are removed until the disk is as full as when that begins: 85 and 80 are the defaults",
		"set both, the high one above the low one")
}

// lastGiven returns the second of two flags if it is given, or else the first.
func lastGiven(flags map[string]string, first, second string) string {
	if flags[second] != "" {
		return second
	}
	return first
}
