package tools

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program returns a tool from the cache or the machine. It skips the test if the tool is missing, because these tests
// build nothing.
func program(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the real " + name)
	}
	tool, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := DefaultCache()
	if err != nil {
		t.Skip(err)
	}
	plan, err := (&Builder{Cache: cache}).Plan(t.Context(), []Tool{tool})
	if err != nil {
		t.Fatal(err)
	}
	if plan[0].State == Missing {
		t.Skipf("%s is not built", name)
	}
	return plan[0].Path
}

func TestSmoke_ProgramsSayTheirDeclaredVersion(t *testing.T) {
	for _, c := range []struct {
		tool string
		link string // run it by this name instead
		args []string
		want string // version follows
	}{
		{"pulumi", "", []string{"version"}, "v"},
		{"kube", "", []string{"kube-apiserver", "--version"}, "Kubernetes v"},
		{"kube", "", []string{"kube-controller-manager", "--version"}, "Kubernetes v"},
		{"kube", "", []string{"kube-scheduler", "--version"}, "Kubernetes v"},
		{"kube", "kubectl", []string{"version", "--client"}, "Client Version: v"},
		{"talosctl", "", []string{"version", "--client", "--short"}, "Talos v"},
		{"argo-cd", "", []string{"version", "--client", "--short"}, "argocd: v"},
		{"helm", "", []string{"version", "--short"}, "v"},
		{"kustomize", "", []string{"version"}, "v"},
	} {
		t.Run(c.tool+" "+strings.Join(c.args, " "), func(t *testing.T) {
			path := program(t, c.tool)
			if c.link != "" {
				path = filepath.Join(filepath.Dir(path), c.link)
			}
			tool, err := Find(c.tool)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), path, c.args...)
			cmd.Env = append(os.Environ(), "PULUMI_SKIP_UPDATE_CHECK=true", "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.want+tool.Version) {
				t.Errorf("said %q, %v; want %s%s", out, err, c.want, tool.Version)
			}
		})
	}
}

func TestSmoke_ControllersKnowTheFlagsTheLabUses(t *testing.T) {
	common := []string{"enable-leader-election", "metrics-addr", "health-addr", "events-addr"}
	for name, flags := range map[string][]string{
		"source-controller":    append([]string{"storage-path", "storage-addr", "storage-adv-addr"}, common...),
		"kustomize-controller": common,
		"helm-controller":      common,
		"flux-operator":        {"enable-leader-election", "metrics-addr", "health-addr", "storage-path"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program(t, name), "--help")
			cmd.Env = append(os.Environ(), "RUNTIME_NAMESPACE=flux-system", "GODEBUG=fips140=on")
			out, _ := cmd.CombinedOutput() // some programs exit with an error after --help
			for _, flag := range flags {
				if !strings.Contains(string(out), "--"+flag) {
					t.Errorf("no flag --%s", flag)
				}
			}
		})
	}
}

// A plugin prints the port that it serves on as its first line. The engine waits for that line.
func TestSmoke_PluginsAnswerTheEngine(t *testing.T) {
	plugins := 0
	for _, tool := range Table {
		if tool.Plugin == "" {
			continue
		}
		plugins++
		t.Run(tool.Name, func(t *testing.T) {
			path := program(t, tool.Name)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// A plugin ends if its engine does not answer, and nobody answers on this address.
			cmd := exec.CommandContext(ctx, path, "127.0.0.1:1")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatalf("said %q, %v", line, err)
			}
			if port, err := strconv.Atoi(strings.TrimSpace(line)); err != nil || port < 1 {
				t.Errorf("said %q, want a port", line)
			}
		})
	}
	if plugins == 0 {
		t.Error("no plugin in the table")
	}
}

func TestSmoke_DataFilesAreThere(t *testing.T) {
	cache, err := DefaultCache()
	if err != nil {
		t.Skip(err)
	}
	for name, patterns := range map[string][]string{
		"cilium-crds":          {"v2/ciliumnodes.yaml", "v2/ciliumendpoints.yaml", "v2alpha1/*.yaml"},
		"cilium-charts":        {"cilium-1.18.7.tgz", "sources/Chart.yaml"},
		"flux-operator":        {"flux/v2.9.5/*.yaml", "crds/fluxcd.controlplane.io_fluxinstances.yaml"},
		"source-controller":    {"crds/source.toolkit.fluxcd.io_gitrepositories.yaml"},
		"kustomize-controller": {"crds/kustomize.toolkit.fluxcd.io_kustomizations.yaml"},
		"helm-controller":      {"crds/helm.toolkit.fluxcd.io_helmreleases.yaml"},
		"cloudnative-pg-crds":  {"cnpg-1.30.0.yaml"},
		"rook":                 {"crds.yaml", "chart/Chart.yaml", "library/Chart.yaml", "csi-operator/Chart.yaml"},
		"ceph-csi":             {"crd.yaml", "chart/Chart.yaml"},
		"argo-cd":              {"git-verify-wrapper.sh", "gpg-wrapper.sh"},
		"argo-cd-chart":        {"chart/Chart.yaml"},

		"victoriametrics-operator-crds": {"crd.descriptionless.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			program(t, name)
			dir, err := DataDir(t.Context(), cache, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, pattern := range patterns {
				if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) == 0 {
					t.Errorf("no %s in %s", pattern, dir)
				}
			}
		})
	}
}

func TestDataDir_SaysWhatIsWrong(t *testing.T) {
	for name, want := range map[string]string{
		"kube":        "has no data files",
		"cilium-crds": "build the tools first",
		"nonsense":    "not in the table",
	} {
		_, err := DataDir(t.Context(), t.TempDir(), name)
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
