// Package register replaces external-secrets' list of all providers. The lab has a server for one of them.
package register

import _ "github.com/external-secrets/external-secrets/pkg/provider/onepassword"
