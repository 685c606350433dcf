module ${PROJECT}

go 1.26.6

require github.com/slipway-platform/slipway v0.1.0
