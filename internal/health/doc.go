// Package health says what healthy means: the specs of what a cluster should be, the checks that compare it with what was seen, and
// the wait that ends when all of them hold. It talks to nothing: package observe fills what the checks read, and the command
// slipway-probe puts the two together. So everything in here is decided in microseconds, and the Pulumi program that hands over a spec
// links neither client-go nor the Talos client.
package health
