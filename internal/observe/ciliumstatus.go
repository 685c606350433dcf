package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/slipway-platform/slipway/internal/health/gate"
)

// agentStatus is the part of Cilium's StatusResponse that the gate reads.
type agentStatus struct {
	Cilium     *component `json:"cilium"`
	Kubernetes *component `json:"kubernetes"`
	Kvstore    *component `json:"kvstore"`
	Runtime    *component `json:"container-runtime"`
	CNIFile    *component `json:"cni-file"`
	IPAM       *struct {
		Status string `json:"status"`
	} `json:"ipam"`
	Controllers []struct {
		Name   string `json:"name"`
		Status *struct {
			Failures int    `json:"consecutive-failure-count"`
			Message  string `json:"last-failure-msg"`
		} `json:"status"`
	} `json:"controllers"`
}

type component struct {
	State string `json:"state"` // Ok, Warning, Failure or Disabled
	Msg   string `json:"msg"`
}

func (k *Kube) ciliumStatus(ctx context.Context, namespace, pod string) gate.CiliumStatus {
	seen := gate.CiliumStatus{Asked: true}
	out, err := k.exec(ctx, namespace, pod, "cilium-agent", "cilium-dbg", "status", "-o", "json")
	if err == nil {
		err = parseCiliumStatus(out, &seen)
	}
	if err != nil {
		seen.Err = err.Error()
	}
	return seen
}

// pool matches a range in the agent's IPAM status: "IPv4: 4/254 allocated from 10.244.1.0/24, ".
var pool = regexp.MustCompile(`allocated from ([0-9a-fA-F.:]+/[0-9]+)`)

func parseCiliumStatus(report []byte, seen *gate.CiliumStatus) error {
	var status agentStatus
	if err := json.Unmarshal(report, &status); err != nil {
		return fmt.Errorf("the agent's status is not the expected JSON: %w", err)
	}
	if status.Cilium == nil {
		return errors.New("the agent's status lacks the state of Cilium")
	}
	for _, c := range []struct {
		name string
		*component
	}{{"Cilium", status.Cilium}, {"its Kubernetes client", status.Kubernetes}, {"its key-value store", status.Kvstore},
		{"its container runtime", status.Runtime}, {"its CNI file", status.CNIFile}} {
		if c.component == nil {
			continue
		}
		switch c.State {
		case "Failure":
			seen.Problems = append(seen.Problems, fmt.Sprintf("%s reports a failure: %s", c.name, c.Msg))
		case "Warning":
			seen.Remarks = append(seen.Remarks, fmt.Sprintf("%s warns: %s", c.name, c.Msg))
		}
	}
	for _, controller := range status.Controllers {
		if controller.Status != nil && controller.Status.Failures > 0 {
			seen.Remarks = append(seen.Remarks,
				fmt.Sprintf("controller %s has failed %d times in a row: %s", controller.Name, controller.Status.Failures, controller.Status.Message))
		}
	}
	if status.IPAM == nil {
		return nil
	}
	var pools []string
	for _, match := range pool.FindAllStringSubmatch(status.IPAM.Status, -1) {
		pools = append(pools, match[1])
	}
	var err error
	seen.Pools, err = prefixes(pools)
	return err
}
