package tokens

// Full is the mark of a name without a token left.
var Full = full
