// SPDX-License-Identifier: Apache-2.0
// Proved: while a writer of a row is under way, no other operation on the row is let through but those that follow the newest
// writer of the row, which stores an item of their tag, and has not lost its entry; a writer is let through when at most one of the
// row is under way, and nothing that changes an item in its place while there is one; no entry is given out twice; an operation waits only for entries that are in
// use; and what lets it go on holds until it is taken.
  logic f_started = 1'b0;
  (* anyconst *) logic [ROW_BITS-1:0] f_row;
  // The newest writer of f_row, and the one before it; whether they are under way.
  logic f_any, f_open, f_older_open;
  logic [LOG+1:0] f_newest;
  logic [LOG-1:0] f_older_id;
  wire [LOG-1:0] f_id = f_newest[LOG-1:0];
  logic [TAG_BITS-1:0] f_tag;
  logic f_stores, f_follows;
  logic [LOG-1:0] f_ahead;
  logic f_reused;               // another writer has its entry now
  wire [LOG+1:0] f_since = number - f_newest;
  // The operation that waits.
  logic f_waits, f_keyed, f_writer, f_in_place, f_may;
  logic [ROW_BITS-1:0] f_own_row;
  logic [TAG_BITS-1:0] f_own_tag;
  wire f_here = valid && keyed && row == f_row;

  initial assume (rst);
  always_comb begin
    if (f_waits) assume (valid && row == f_own_row && tag == f_own_tag && keyed == f_keyed && writer == f_writer && in_place == f_in_place);
    if (take) assume (valid && !full && (!conflict || follows));
    if (writer) assume (keyed);
    if (in_place) assume (writer && !stores);
    if (stores) assume (writer);
    // Who frees an entry holds it.
    if (free_a_valid) assume (busy[free_a_id]);
    if (free_b_valid) assume (busy[free_b_id]);
    if (free_a_valid && free_b_valid) assume (free_a_id != free_b_id);
  end
  wire f_frees = (free_a_valid && free_a_id == f_id) || (free_b_valid && free_b_id == f_id);
  wire f_frees_older = (free_a_valid && free_a_id == f_older_id) || (free_b_valid && free_b_id == f_older_id);
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    f_waits <= !rst && valid && !take;
    f_keyed <= keyed;
    f_writer <= writer;
    f_in_place <= in_place;
    f_own_row <= row;
    f_own_tag <= tag;
    f_may <= !full && (!conflict || follows);
    if (rst) begin
      f_any <= 1'b0;
      f_open <= 1'b0;
      f_older_open <= 1'b0;
      f_reused <= 1'b0;
    end else begin
      if (f_frees) f_open <= 1'b0;
      if (f_frees_older) f_older_open <= 1'b0;
      if (take && writer) begin
        if (row == f_row) begin
          f_any <= 1'b1;
          f_open <= 1'b1;
          f_newest <= number;
          f_tag <= tag;
          f_stores <= stores;
          f_follows <= follows;
          f_ahead <= from[LOG-1:0];
          f_reused <= 1'b0;
          f_older_open <= f_open && !f_frees;
          f_older_id <= f_id;
        end else if (id == f_id) begin
          f_reused <= 1'b1;
        end
      end
    end
    if (f_started && !rst) begin
      // The entries of the row.
      for (int i = 0; i < ENTRIES; i++)
        if (busy[i] && rows[i] == f_row) assert ((f_open && f_id == LOG'(i)) || (f_older_open && f_older_id == LOG'(i)));
      if (f_open) assert (f_any && !f_reused && busy[f_id] && rows[f_id] == f_row && newest[f_id]);
      if (f_older_open) assert (f_any && busy[f_older_id] && rows[f_older_id] == f_row && !newest[f_older_id]);
      if (f_open && f_older_open) assert (f_id != f_older_id);
      if (f_any && !f_reused) begin
        assert (f_since != '0 && f_since <= (LOG + 2)'(ENTRIES));
        assert (entries[f_id] == {f_stores, f_tag, f_newest[LOG+1:LOG], f_follows, f_ahead});
        if (f_older_open) assert (f_follows && f_ahead == f_older_id);
      end
      // The operation that is offered.
      if (asks || knows || follows) assert (f_waits && keyed);
      for (int i = 0; i < ENTRIES; i++) begin
        for (int j = 0; j < i; j++) assert (!(busy[i] && busy[j] && newest[i] && newest[j] && rows[i] == rows[j]));
        if (busy[i] && newest[i] && rows[i] == row) assert ((!asks || asked == LOG'(i)) && (!knows || known[LOG-1:0] == LOG'(i)) && (!follows || from[LOG-1:0] == LOG'(i)));
      end
      if (asks) assert (rows[asked] == row);
      if (knows) assert (rows[known[LOG-1:0]] == row);
      if (follows) assert (rows[from[LOG-1:0]] == row);
      if (asks && f_here) assert (f_any && !f_reused && asked == f_id && !in_place);
      if (knows && f_here) begin
        assert (f_any && !f_reused && known == f_newest && !in_place);
        assert (known_stores == f_stores && known_tag == f_tag && known_follows == f_follows && known_ahead == f_ahead);
      end
      if (follows && f_here) begin
        assert (f_any && !f_reused && from == f_newest && f_stores && f_tag == tag && !in_place);
        if (writer) assert (!f_older_open);
      end
      if (f_waits && f_may) assert (!full && (!conflict || follows));
      if (take && f_here) begin
        if (f_open || f_older_open) assert (follows);
        if (writer) assert (!f_older_open);
        if (in_place) assert (!f_open);
      end
      if (take && writer) assert (!busy[id]);
      if (conflict || full) assert (busy != '0);
    end
  end
