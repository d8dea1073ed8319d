// SPDX-License-Identifier: Apache-2.0
// Proved: while a writer of a row is under way, no other operation on the row is let through; no
// entry is given out twice; an operation waits only for an entry that is in use.
  logic f_started = 1'b0;
  (* anyconst *) logic [ROW_BITS-1:0] f_row;
  logic f_writing;            // a writer of f_row is under way
  logic [LOG-1:0] f_id;       // its entry

  initial assume (rst);
  always_comb begin
    if (take) assume (!hazard);
    if (writer) assume (keyed);
    // Who frees an entry holds it.
    if (free_a_valid) assume (busy[free_a_id]);
    if (free_b_valid) assume (busy[free_b_id]);
    if (free_a_valid && free_b_valid) assume (free_a_id != free_b_id);
  end
  wire f_frees = (free_a_valid && free_a_id == f_id) || (free_b_valid && free_b_id == f_id);
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) f_writing <= 1'b0;
    else if (take && writer && row == f_row) begin
      f_writing <= 1'b1;
      f_id <= id;
    end else if (f_frees) begin
      f_writing <= 1'b0;
    end
    if (f_started && !rst) begin
      if (f_writing) assert (busy[f_id] && rows[f_id] == f_row);
      for (int i = 0; i < ENTRIES; i++)
        if (busy[i] && rows[i] == f_row) assert (f_writing && f_id == LOG'(i));
      if (f_writing && row == f_row && keyed) assert (hazard);
      if (take && writer) assert (!busy[id]);
      if (hazard) assert (busy != '0);
    end
  end
