package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShown_IsWhatAMessageMayShow(t *testing.T) {
	url, name, branch := lookup(t, "https-url"), lookup(t, "label"), lookup(t, "git-branch")
	long := strings.Repeat("x", 300)
	for _, one := range []struct {
		form        Form
		value, want string
	}{
		{name, "cp-1", "cp-1"},
		{name, "", `""`},
		{name, "cp 1", `"cp 1"`},
		{name, "cp\n1", `"cp\n1"`},
		{name, `a"b`, `"a\"b"`},
		{name, "c\u0440", `"c\u0440"`},
		{name, "\xff", `"\xff"`},
		{name, long, long[:60] + "…" + long[:35]},
		{name, strings.Repeat(" ", 300), `"` + strings.Repeat(" ", 24) + "…" + strings.Repeat(" ", 12) + `"`},
		{name, strings.Repeat("x", maxLength+1), hidden},
		{name, "ghp_0123456789", hidden},
		{name, "password=hunter2", hidden},
		{name, "https://user:hunter2@pve/", "https://pve/"},
		{branch, "me@home", "me@home"},
		{url, "https://a.b/c/v1.2.3", "https://a.b/c/v1.2.3"},
		{url, "https://a.b:8006", "https://a.b:8006"},
		{url, "https://user:hunter2@a.b/c", "https://a.b/c"},
		{url, "https://ghp_abcdef0123@a.b/c", "https://a.b/c"},
		{url, "https://a.b/c?token=hunter2", "https://a.b/c…"},
		{url, "https://a.b/ghp_abcdef0123/c", "https://a.b/…"},
		{url, "https://a.b/0123456789abcdef0123456789abcdef", "https://a.b/…"},
		{url, "https://a.b/" + long, "https://a.b/…"},
		{url, "https://a.b/c&key=x", "https://a.b/…"},
		{url, "https://user:hunter2/x@a.b/", "https://…"},
		{url, "https://ghp_abcdef0123/", "https://…"},
		{url, "hunter2://a.b", hidden},
		{url, "hunter2", hidden},
		{url, "user:hunter2@a.b/c", hidden},
		{url, "a.b/c", "a.b/c"},
		{lookup(t, "git-username"), "flux", hidden},
		{lookup(t, "api-token"), "x@pve!y=z", hidden},
	} {
		assert.Equal(t, one.want, Shown(one.form, one.value), "%s %q", one.form.Name, one.value)
	}
}

// Wherever a person may have put a credential, no message has any word of it.
func TestForms_KeepCredentialsSecret(t *testing.T) {
	credentials := []string{"hunter2swordfish", "hunter2/swordfish", "hunter2@swordfish", "hunter2?swordfish", "hunter2#swordfish",
		"hunter2:swordfish", "hunter2%2Fswordfish",
		"hunter2 swordfish", `hunter2\swordfish`, "hunter2\u0430swordfish", "ghp_hunter2swordfish", "hunter2..swordfish",
		"hunter2//swordfish", "{hunter2swordfish}", "hunter2\nswordfish"}
	places := []string{
		"%[1]s://user:%[2]s@git.example.com/a/b", "%[1]s://user:%[2]s@git.example.com:8443/a/../b",
		"%[1]s://git.example.com/a/b?token=%[2]s", "%[1]s://git.example.com/a/b#%[2]s",
		"user:%[2]s@git.example.com:a/b.git", "user:%[2]s@git.example.com/a/b", "%[1]s://user:%[2]s@git.example.com:99999/",
		"%[1]s:/user:%[2]s@git.example.com/",
		`%[1]s:\\user:%[2]s@git.example.com\a`, " %[1]s://user:%[2]s@git.example.com/a/b", "%[1]s://user:%[2]s@git.example.com/a/b\n",
		"//user:%[2]s@git.example.com/a",
		"%[1]s://user:%[2]s@/", "%[1]s://user:%[2]s@", "%[1]s:// user:%[2]s@git.example.com/a", "%[1]s://user:%[2]s@git.example.com/a b",
	}
	looked := 0
	for _, name := range allNames() {
		form := lookup(t, name)
		for _, place := range places {
			for _, scheme := range []string{"https", "HTTPS", "oci", "ssh", "foo"} {
				for _, credential := range credentials {
					value := fmt.Sprintf(place, scheme, credential)
					require.NotContains(t, value, "%!")
					fault := form.Check(value)
					if fault == nil {
						require.False(t, form.Secret, "%s accepts %q", name, value)
						continue
					}
					looked++
					message := strings.ToLower(Shown(form, value) + " " + fault.Problem + "; " + fault.Remedy)
					if name == "git-branch" || name == "repository-path" {
						message = strings.ToLower(fault.Problem) // neither is ever a secret's place; what they show is not looked through
					}
					require.NotContains(t, message, "hunter2", "%s %q", name, value)
					require.NotContains(t, message, "swordfish", "%s %q", name, value)
				}
			}
		}
	}
	require.Greater(t, looked, 10000)
}

func TestForms_KeepTokensSecret(t *testing.T) {
	for _, token := range []string{"ghp_0123456789abcdefABCDEF", "glpat-0123456789abcdefABCD", "github_pat_11ABCDEFG0",
		"GHP_0123456789ABCDEF", "hvs.CAESIJ0123456789"} {
		for _, name := range allNames() {
			form := lookup(t, name)
			for _, value := range []string{token, "https://" + token + "@github.com/a/b", "https://" + token + "/a",
				"https://github.com/" + token, token + ".home.arpa", " " + token} {
				shown, fault := Shown(form, value), form.Check(value)
				require.NotContains(t, strings.ToLower(shown), strings.ToLower(token), "%s %q", name, value)
				if fault != nil {
					require.NotContains(t, strings.ToLower(fault.Problem+fault.Remedy), strings.ToLower(token[5:]), "%s %q", name, value)
				}
			}
		}
	}
}
