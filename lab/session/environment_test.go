package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/tools"
)

func TestEnvironment_RemovesTheUsersCloudVariablesAndKeepsTheRest(t *testing.T) {
	h := &home.Home{Dir: "/labs/x"}
	env := Environment(h, home.Settings{Secrets: home.Secrets{ProxmoxToken: "lab", Passphrase: "p"}}, []string{
		"HOME=/home/me", "KUBECONFIG=/home/me/.kube/config", "PULUMI_ACCESS_TOKEN=secret", "PROXMOX_VE_API_TOKEN=mine",
		"PROXMOX_VE_SSH_USERNAME=root", "HTTPS_PROXY=http://proxy", "GOPROXY=https://elsewhere",
	})
	all := strings.Join(env, "\n")
	for _, mine := range []string{"/home/me/.kube", "PULUMI_ACCESS_TOKEN", "=mine", "PROXMOX_VE_SSH", "HTTPS_PROXY", "elsewhere"} {
		require.NotContains(t, all, mine)
	}
	for _, want := range []string{"HOME=/home/me", "KUBECONFIG=/labs/x/kubeconfig", "PROXMOX_VE_API_TOKEN=lab", "GOPROXY=off", "PATH=/labs/x/bin:"} {
		require.Contains(t, all, want)
	}
	require.IsNonDecreasing(t, env)
}

func TestEnvironment_CompilesTheProgramLikeTheToolsUnlessToldOtherwise(t *testing.T) {
	h := &home.Home{Dir: "/labs/x"}
	require.Contains(t, Environment(h, home.Settings{}, nil), "GOFLAGS="+tools.GoFlags)
	require.Contains(t, Environment(h, home.Settings{}, []string{"GOFLAGS=-race"}), "GOFLAGS=-race")
}
