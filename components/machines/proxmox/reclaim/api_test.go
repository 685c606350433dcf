package reclaim

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// refusing is a Proxmox VE that answers each request with a status.
func refusing(t *testing.T, code int) API {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	t.Cleanup(server.Close)
	return API{Endpoint: server.URL, Token: "slipway@pve!pulumi=s3cret", Insecure: true}
}

func TestAPI_ARefusedTokenSaysHowToSetIt(t *testing.T) {
	t.Setenv(tokenVariable, "slipway@pve!pulumi=0ther")
	api := refusing(t, http.StatusUnauthorized)
	assert.EqualError(t, Check(t.Context(), api, newCluster, silently(t)), "proxmox: GET version: 401 Unauthorized; "+
		"set the token again: pulumi config set --secret slipway:proxmoxApiToken")
	api.Token = ""
	assert.EqualError(t, Check(t.Context(), api, newCluster, silently(t)), "proxmox: GET version: 401 Unauthorized; "+
		"export PROXMOX_VE_API_TOKEN with the token again, or set it with: pulumi config set --secret slipway:proxmoxApiToken")
}

func TestAPI_AMissingPrivilegeSaysWhoNeedsWhichRole(t *testing.T) {
	api := refusing(t, http.StatusForbidden)
	assert.EqualError(t, Check(t.Context(), api, newCluster, silently(t)), "proxmox: GET version: 403 Forbidden; "+
		"give the token's user the role of docs/quickstart.md on /, and make the token with --privsep 0")
}

func TestAPI_OtherErrorsHaveNoRemedyOfTheToken(t *testing.T) {
	api := refusing(t, http.StatusNotImplemented)
	assert.EqualError(t, Check(t.Context(), api, newCluster, silently(t)), "proxmox: GET version: 501 Not Implemented")
}

func TestAPI_AMissingTokenNamesTheConfigurationFirst(t *testing.T) {
	t.Setenv(tokenVariable, "")
	assert.EqualError(t, Check(t.Context(), API{}, newCluster, silently(t)), "no Proxmox API token; "+
		"set it with: pulumi config set --secret slipway:proxmoxApiToken, or export PROXMOX_VE_API_TOKEN")
}
