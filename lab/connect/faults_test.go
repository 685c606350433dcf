package connect

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

func TestFaults_Connect5xxAnswersUntilItIsOff(t *testing.T) {
	s := server(t)
	good := token(t, s.Account, time.Hour, "*")
	require.NoError(t, s.Faults.On(fault.Fault{Kind: fault.Connect5xx, Target: "infra"}))
	code, body := ask(t, s, good, "GET", "/v1/vaults")
	require.Equal(t, 500, code)
	require.JSONEq(t, `{"status":500,"message":"Internal Server Error"}`, body)
	code, _ = ask(t, s, "", "GET", "/health")
	require.Equal(t, 200, code)
	require.NoError(t, s.Faults.On(fault.Fault{Kind: fault.Connect5xx, Target: "infra", Detail: "503 upstream is gone"}))
	code, body = ask(t, s, good, "GET", "/v1/vaults")
	require.Equal(t, 503, code)
	require.Contains(t, body, "upstream is gone")
	require.True(t, s.Faults.Off(fault.Connect5xx, "infra"))
	code, _ = ask(t, s, good, "GET", "/v1/vaults")
	require.Equal(t, 200, code)
}

func TestFaults_OfAnotherClusterHaveNoEffect(t *testing.T) {
	s := server(t)
	require.NoError(t, s.Faults.On(fault.Fault{Kind: fault.Connect5xx, Target: "apps"}))
	require.NoError(t, s.Faults.On(fault.Fault{Kind: fault.ConnectRefused, Target: "apps"}))
	code, _ := ask(t, s, token(t, s.Account, time.Hour, "*"), "GET", "/v1/vaults")
	require.Equal(t, 200, code)
	require.False(t, s.Refused())
}

func TestFaults_ConnectSlowDelaysAnswersUntilItIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		good := token(t, s.Account, time.Hour, "*")
		for detail, want := range map[string]time.Duration{"": slowness, "5s": 5 * time.Second} {
			require.NoError(t, s.Faults.On(fault.Fault{Kind: fault.ConnectSlow, Target: "infra", Detail: detail}))
			began := time.Now()
			code, _ := ask(t, s, good, "GET", "/v1/vaults")
			require.Equal(t, 200, code)
			require.Equal(t, want, time.Since(began))
		}
		began := time.Now()
		time.AfterFunc(time.Second, s.Faults.Clear)
		ask(t, s, good, "GET", "/v1/vaults")
		require.Equal(t, time.Second, time.Since(began))
	})
	require.Error(t, (&fault.Set{}).On(fault.Fault{Kind: fault.ConnectSlow, Target: "infra", Detail: "slow"}))
}
