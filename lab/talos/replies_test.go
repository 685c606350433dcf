package talos_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"gopkg.in/yaml.v3"
)

// dryRuns are changes of a control plane's configuration, by the mode in which a dry run applies them. An empty one changes nothing.
var dryRuns = map[machine.ApplyConfigurationRequest_Mode][]string{
	machine.ApplyConfigurationRequest_AUTO: {
		`{machine: {}}`,
		`{machine: {sysctls: {vm.max_map_count: "262144"}}}`,
		`{machine: {kubelet: {extraArgs: {v: "2"}}}}`,
		`{machine: {nodeLabels: {rack: "7"}}}`,
		`{machine: {nodeTaints: {rack: "7:NoSchedule"}}}`,
		`{machine: {certSANs: [talos.example.com]}}`,
		`{machine: {files: [{path: /var/lab, op: create, content: a}]}}`,
		`{machine: {env: {GRPC_GO_LOG_SEVERITY_LEVEL: info}}}`,
		`{machine: {udev: {rules: ['SUBSYSTEM=="drm"']}}}`,
		`{machine: {kernel: {modules: [{name: dummy}]}}}`,
		`{machine: {install: {wipe: true}}}`,
		`{machine: {features: {diskQuotaSupport: false}}}`,
		`{machine: {features: {hostDNS: {enabled: false}}}}`,
		`{machine: {type: worker}}`,
		`{cluster: {apiServer: {extraArgs: {v: "2"}}}}`,
		`{cluster: {etcd: {extraArgs: {heartbeat-interval: "500"}}}}`,
		`{cluster: {clusterName: other}}`,
		`{apiVersion: v1alpha1, kind: DummyLinkConfig, name: dummy7}`,
		// What is refused.
		`{cluster: {network: {podSubnets: [10.0.0.0/33]}}}`,
		`{cluster: {controlPlane: {endpoint: 10.0.0.1}}}`,
		`{cluster: {apiServer: {image: "registry.k8s.io/kube-apiserver:v1.20.0"}}}`,
		`{cluster: {allowSchedulingOnControlPlanes: false, etcd: {advertisedSubnets: [nosuch]}}}`,
		`{machine: {kubelet: {extraConfig: {port: 1}}}}`,
		`{machine: {kubelet: {image: "ghcr.io/siderolabs/kubelet:v1.20.0"}}}`,
		`{machine: {kubelet: {nodeIP: {validSubnets: [nosuch]}}}}`,
		`{machine: {nodeLabels: {"-": "7"}}}`,
		`{machine: {nodeTaints: {rack: "7:Never"}}}`,
		`{machine: {install: {disk: "", image: ""}}}`,
		`{machine: {type: nosuch}}`,
		`{apiVersion: v1alpha1, kind: VLANConfig, name: eth0.7, parent: eth0}`,
		`{apiVersion: v1alpha1, kind: UserVolumeConfig, name: "a volume"}`,
	},
	machine.ApplyConfigurationRequest_NO_REBOOT: {
		`{machine: {sysctls: {vm.max_map_count: "262144"}}}`, `{machine: {files: [{path: /var/lab, op: create, content: a}]}}`,
	},
	machine.ApplyConfigurationRequest_TRY: {
		`{machine: {sysctls: {vm.max_map_count: "262144"}}}`, `{machine: {files: [{path: /var/lab, op: create, content: a}]}}`,
	},
	machine.ApplyConfigurationRequest_REBOOT: {`{machine: {sysctls: {vm.max_map_count: "262144"}}}`},
	machine.ApplyConfigurationRequest_STAGED: {`{machine: {sysctls: {vm.max_map_count: "262144"}}}`},
}

// configurations are sent as they are, and refused.
var configurations = []string{
	"",
	"{",
	"{}",
	"version: v1alpha1\n",
	"version: v1alpha1\nmachine: {nosuch: true}\n",
	"apiVersion: v1alpha1\nkind: NoSuchConfig\n",
	"apiVersion: v1alpha1\nkind: DummyLinkConfig\n",
	"apiVersion: v1alpha1\nkind: DummyLinkConfig\nname: dummy7\n",
	"apiVersion: v1alpha1\nkind: DummyLinkConfig\nname: dummy7\n---\napiVersion: v1alpha1\nkind: DummyLinkConfig\nname: dummy7\n",
}

// calls are other RPCs that change nothing.
var calls = map[string]func(context.Context, *client.Client) error{
	"Bootstrap": func(ctx context.Context, c *client.Client) error {
		return c.Bootstrap(ctx, &machine.BootstrapRequest{})
	},
	"EtcdRemoveMemberByID of 1": func(ctx context.Context, c *client.Client) error {
		return c.EtcdRemoveMemberByID(ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: 1})
	},
	"EtcdForfeitLeadership": func(ctx context.Context, c *client.Client) error {
		_, err := c.EtcdForfeitLeadership(ctx, &machine.EtcdForfeitLeadershipRequest{})
		return err
	},
	"EtcdRecover": func(ctx context.Context, c *client.Client) error {
		_, err := c.EtcdRecover(ctx, strings.NewReader("no snapshot"))
		return err
	},
	"Logs of nosuch": func(ctx context.Context, c *client.Client) error {
		stream, err := c.Logs(ctx, "system", common.ContainerDriver_CONTAINERD, "nosuch", false, -1)
		for err == nil {
			_, err = stream.Recv()
		}
		return err
	},
	"Reset of /dev/nosuch": func(ctx context.Context, c *client.Client) error {
		return c.ResetGeneric(ctx, &machine.ResetRequest{
			Mode: machine.ResetRequest_USER_DISKS, UserDisksToWipe: []string{"/dev/nosuch"},
		})
	},
	"Reset of the system disk and /dev/nosuch": func(ctx context.Context, c *client.Client) error {
		return c.ResetGeneric(ctx, &machine.ResetRequest{
			Mode: machine.ResetRequest_SYSTEM_DISK, UserDisksToWipe: []string{"/dev/nosuch"},
		})
	},
	"ServiceRestart of machined": serviceRestart("machined"),
	"ServiceRestart of nosuch":   serviceRestart("nosuch"),
	"ServiceStart of nosuch": func(ctx context.Context, c *client.Client) error {
		_, err := c.ServiceStart(ctx, "nosuch")
		return err
	},
	"ServiceStop of apid":   serviceStop("apid"),
	"ServiceStop of nosuch": serviceStop("nosuch"),
	"Upgrade to no image": func(ctx context.Context, c *client.Client) error {
		_, err := c.UpgradeWithOptions(ctx, client.WithUpgradeImage("no image"))
		return err
	},
}

func serviceRestart(id string) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		_, err := c.ServiceRestart(ctx, id)
		return err
	}
}

func serviceStop(id string) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		_, err := c.ServiceStop(ctx, id)
		return err
	}
}

// replies are what a control plane that runs says to dry runs, to configurations that are wrong, and to RPCs, each by what is asked.
func replies(ctx context.Context, t *testing.T, c *client.Client) map[string]string {
	t.Helper()
	has, err := safe.StateGetByID[*configres.MachineConfig](ctx, c.COSI, configres.ActiveID)
	require.NoError(t, err)
	config, err := has.Provider().Bytes()
	require.NoError(t, err)
	out := map[string]string{}
	for mode, patches := range dryRuns {
		for _, text := range patches {
			patch, err := configpatcher.LoadPatch([]byte(text))
			require.NoError(t, err, text)
			patched, err := configpatcher.Apply(configpatcher.WithBytes(config), []configpatcher.Patch{patch})
			require.NoError(t, err, text)
			data, err := patched.Bytes()
			require.NoError(t, err, text)
			out[mode.String()+" "+text] = dryRun(ctx, c, mode, data)
		}
	}
	for _, text := range configurations {
		out["configuration "+text] = dryRun(ctx, c, machine.ApplyConfigurationRequest_AUTO, []byte(text))
	}
	for name, call := range calls {
		out[name] = words(call(ctx, c))
	}
	return out
}

// dryRun is what a node says of a configuration, without the difference, which may have secrets in it.
func dryRun(ctx context.Context, c *client.Client, mode machine.ApplyConfigurationRequest_Mode, data []byte) string {
	reply, err := c.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: data, Mode: mode, DryRun: true})
	if err != nil {
		return words(err)
	}
	m := reply.GetMessages()[0]
	details, difference, _ := strings.Cut(m.GetModeDetails(), "\nConfig diff:\n\n")
	if strings.Contains(difference, "No changes.") {
		details += " No changes."
	}
	return fmt.Sprintf("%s: %s, warnings: %q", m.GetMode(), details, m.GetWarnings())
}

// words are those of an error, with its code; "" if there is none.
func words(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
}

// recordReplies writes what a real node replies.
func (r recording) recordReplies(t *testing.T, got map[string]string) {
	t.Helper()
	text, err := yaml.Marshal(got)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(string(r)+"/replies", text, 0o644))
}

// repliesAlike compares what a node of the lab replies.
func (r recording) repliesAlike(t *testing.T, alike *strings.Replacer, got map[string]string, known []*difference) {
	t.Helper()
	text, err := os.ReadFile(string(r) + "/replies")
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(string(r)) < "1.14" {
		return // 1.12 and 1.13 were recorded before
	}
	require.NoError(t, err)
	var recorded map[string]string
	require.NoError(t, yaml.Unmarshal(text, &recorded))
	got = maps.Clone(got)
	for asked, reply := range got {
		got[asked] = alike.Replace(reply)
	}
	compareReal(t, "replies", recorded, got, known)
}
