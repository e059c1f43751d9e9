//! First half: where do I connect next? Vocabulary and algorithm; no sockets, no threads.
