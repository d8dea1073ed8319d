// SPDX-License-Identifier: Apache-2.0
// Proved: operations leave in order, each with its own row, tag and data; for any row and way, what
// an operation on the row learns of the way is what the last update wrote there (after reset:
// nothing), or, if it follows a plain set, what that one was told; a way that is called found has the tag; it is read unless the operation is blind, once;
// and no row gets the same tag twice, if who has been told a way writes its own tag there.
  logic f_started = 1'b0;
  (* anyconst *) logic [ROW_BITS-1:0] f_row;
  (* anyconst *) logic [WAY_BITS-1:0] f_way, f_other;  // two ways of it
  logic [ENTRY-1:0] f_entry, f_entry_other;   // what was written there last
  logic f_cleared;
  wire [TAG_BITS-1:0] f_entry_tag = f_entry[ENTRY-2-:TAG_BITS];
  wire [TAG_BITS-1:0] f_other_tag = f_entry_other[ENTRY-2-:TAG_BITS];
  logic [ENTRY-1:0] f_mem, f_read, f_mem_other, f_read_other;
  logic [ENTRY-1:0] f_mems[WAYS];
  for (genvar w = 0; w < WAYS; w++) begin : g_formal
    assign f_mems[w] = g_way[w].mem[f_row];
  end
  always_comb begin
    f_mem = f_mems[f_way];
    f_mem_other = f_mems[f_other];
    f_read = entries[f_way];
    f_read_other = entries[f_other];
  end
  wire f_in_s1 = s1_valid && s1_row == f_row;
  wire f_in_s2 = s2_valid && s2_row == f_row;
  // An operation on the row that follows nobody.
  wire f_here = (f_in_s1 && !s1_follows) || (f_in_s2 && !s2_follows);

  // A writer of the row that has been told a way, and not yet finished. There may be several, of one tag (the
  // scoreboard's proof).
  logic f_writer;
  logic [WAY_BITS-1:0] f_writer_way;
  logic [TAG_BITS-1:0] f_writer_tag;
  (* anyseq *) logic f_writes, f_finishes;

  // The newest writer of the row, while it is a plain set, whether it has been told a way or not; and the last
  // one that has been told one.
  logic f_last;
  logic [ID_BITS-1:0] f_last_id;
  logic [TAG_BITS-1:0] f_last_tag;
  logic f_told, f_told_half;
  logic [ID_BITS-1:0] f_told_id;
  logic [WAY_BITS-1:0] f_told_way;
  logic [TAG_BITS-1:0] f_told_tag;
  logic [SIZE_BITS-1:0] f_told_beats;
  wire [ID_BITS-1:0] f_s1_from = s1_from[ID_BITS-1:0];
  wire [ID_BITS-1:0] f_s2_from = s2_from[ID_BITS-1:0];
  wire f_set_here = (f_in_s1 && s1_blind) || (f_in_s2 && s2_blind);
  wire f_leaves = out_valid && out_ready;

  logic f_may;                                // an operation may come
  always_ff @(posedge clk) f_may <= !rst && in_ready && !in_valid;

  initial assume (rst);
  always_comb begin
    assume (f_way != f_other);
    if (in_valid) assume (ready && f_may);
    if (in_valid && in_blind) assume (in_keyed);
    // The scoreboard: while a writer is under way, no other operation on the row comes but those that follow a plain set; so who
    // updates the row has left, and no other operation on the row is here.
    if (in_valid && in_row == f_row) begin
      if (in_follows) assume (in_keyed && f_last && in_from[ID_BITS-1:0] == f_last_id && in_tag == f_last_tag && !(f_writes && !s2_blind));
      else assume (!f_writer && !f_set_here && !f_writes);
    end
    if (!ready) assume (!update_valid);
    if (update_valid && update_row == f_row)
      assume (f_writer && update_way == f_writer_way && (!update_live || update_tag == f_writer_tag));
    if (f_writes) assume (f_leaves && f_in_s2 && (s2_blind || !f_in_s1));
    if (f_leaves && f_in_s2 && s2_blind) assume (f_writes);
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_cleared <= 1'b0;
      f_writer <= 1'b0;
      f_last <= 1'b0;
      f_told <= 1'b0;
    end else begin
      if (f_writes) begin
        f_told <= s2_blind;
        f_told_id <= s2_id;
        f_told_way <= out_way;
        f_told_half <= !out_half;
        f_told_tag <= out_tag;
        f_told_beats <= s2_beats;
        if (!s2_blind) f_last <= 1'b0;
      end
      if (in_valid && in_blind) begin
        if (in_row == f_row) begin
          f_last <= 1'b1;
          f_last_id <= in_id;
          f_last_tag <= in_tag;
        end else if (in_id == f_last_id) begin
          f_last <= 1'b0;
        end
      end
      if (!ready && clear_row[ROW_BITS-1:0] == f_row) begin
        f_cleared <= 1'b1;
        f_entry <= '0;
        f_entry_other <= '0;
      end
      if (update_valid && update_row == f_row && update_way == f_way)
        f_entry <= {update_live, update_tag, update_half, update_beats};
      if (update_valid && update_row == f_row && update_way == f_other)
        f_entry_other <= {update_live, update_tag, update_half, update_beats};
      if (f_writes) begin
        f_writer <= 1'b1;
        f_writer_way <= out_way;
        f_writer_tag <= out_tag;
      end else if (f_finishes) begin
        f_writer <= 1'b0;
      end
    end
    if (f_started && !rst) begin
      assert (clear_row <= (ROW_BITS + 1)'(2 ** ROW_BITS));
      assert (f_cleared == (clear_row > {1'b0, f_row}));
      if (f_cleared) assert (f_mem == f_entry && f_mem_other == f_entry_other);
      if (s1_valid || s2_valid || f_writer) assert (ready);
      if (f_may) assert (!s1_valid || (s1_aged && s2_ready));
      if (s1_aged) assert (s1_valid);
      if (s1_aged && s1_row == f_row && !s1_follows) begin
        assert (answers[f_way] == f_entry);
        assert (answers[f_other] == f_entry_other);
      end
      // What it learns of the way.
      if (f_in_s1 && !s1_follows) assert (f_read == f_entry && f_read_other == f_entry_other);
      if (f_in_s2 && !s2_follows) begin
        assert (is_free[f_way] == !f_entry[ENTRY-1] && item_of[f_way] == f_entry[SIZE_BITS:0]);
        assert (is_free[f_other] == !f_entry_other[ENTRY-1]);
        if (has_tag[f_way]) assert (f_entry[ENTRY-1] && f_entry_tag == s2_tag);
        if (has_tag[f_other]) assert (f_entry_other[ENTRY-1] && f_other_tag == s2_tag);
        if (out_found && out_way == f_way) assert (has_tag[f_way] && out_half == f_entry[SIZE_BITS] && out_beats == f_entry[SIZE_BITS-1:0]);
        if (f_keyed2 && f_entry[ENTRY-1] && f_entry_tag == s2_tag) assert (has_tag[f_way]);
        if (f_keyed2 && f_entry_other[ENTRY-1] && f_other_tag == s2_tag) assert (has_tag[f_other]);
      end
      if (f_writer) assert (!f_here);
      // Who follows a set is told its way.
      if (f_in_s2 && s2_follows) begin
        assert (f_keyed2 && f_told && s2_tag == f_told_tag && will_be[f_s2_from] == {f_told_way, f_told_half, f_told_beats});
        if (out_valid) assert (out_found && out_way == f_told_way && out_half == f_told_half && out_beats == f_told_beats);
        if (read_valid) assert (read_follows && read_from == s2_from && read_slot == {f_row, f_told_way, f_told_half});
      end
      if (f_in_s1 && s1_follows) begin
        assert (s1_keyed);
        if (f_in_s2 && s2_blind) assert (f_s1_from == s2_id && s1_tag == s2_tag);
        else assert (f_told && s1_tag == f_told_tag && will_be[f_s1_from] == {f_told_way, f_told_half, f_told_beats});
        if (s2_valid && s2_blind && s2_row != f_row) assert (f_s1_from != s2_id);
      end
      if (read_valid) assert (read_follows == s2_follows);
      if (f_last) begin
        if (f_in_s1 && s1_blind) assert (f_last_id == s1_id && f_last_tag == s1_tag);
        else if (f_in_s2 && s2_blind) assert (f_last_id == s2_id && f_last_tag == s2_tag);
        else assert (f_told && f_last_tag == f_told_tag && will_be[f_last_id] == {f_told_way, f_told_half, f_told_beats});
        if (s1_valid && s1_blind && s1_row != f_row) assert (s1_id != f_last_id);
        if (s2_valid && s2_blind && s2_row != f_row && !(f_in_s1 && s1_blind)) assert (s2_id != f_last_id);
      end
      if (f_in_s2 && s2_blind && f_in_s1) assert (s1_follows);
      if (s1_valid && s1_blind) assert (s1_keyed);
      if (s2_valid && s2_blind) assert (f_keyed2);
      if (f_told && f_told_way == f_way) assert (!(f_entry_other[ENTRY-1] && f_other_tag == f_told_tag));
      if (f_told && f_told_way == f_other) assert (!(f_entry[ENTRY-1] && f_entry_tag == f_told_tag));
      if (f_told && f_writer) assert (f_told_way == f_writer_way && f_told_tag == f_writer_tag);
      // The same tag twice.
      if (f_cleared) assert (!(f_entry[ENTRY-1] && f_entry_other[ENTRY-1] && f_entry_tag == f_other_tag));
      if (f_writer && f_writer_way == f_way) assert (!(f_entry_other[ENTRY-1] && f_other_tag == f_writer_tag));
      if (f_writer && f_writer_way == f_other) assert (!(f_entry[ENTRY-1] && f_entry_tag == f_writer_tag));
      // A way that is free is preferred to one that is replaced.
      if (out_valid && !out_found && is_free != '0) assert (is_free[out_way]);
      // Reads.
      if (read_valid) assert (out_found && out_ready);
      if (out_valid && out_ready) assert ((read_valid && read_ready) == (out_found && !s2_blind));
      if (read_valid && read_ready) assert (out_valid);
    end
  end
  // An operation with a key.
  logic f_keyed2;
  always_ff @(posedge clk) if (s2_ready) f_keyed2 <= s1_keyed;
  always_comb if (f_writes) assume (f_keyed2);

  // Order: any operation.
  logic [1:0] f_in, f_out;               // operations so far, modulo 4
  (* anyconst *) logic [1:0] f_number;
  logic f_have;
  localparam int F_BITS = W + TAG_BITS + ROW_BITS + 2 * ID_BITS + SIZE_BITS + 4;
  logic [F_BITS-1:0] f_data;
  wire [1:0] f_place = f_number - f_out;
  wire f_takes = in_valid;
  wire f_gives = out_valid && out_ready;
  always_ff @(posedge clk) begin
    if (rst) begin
      f_in <= '0;
      f_out <= '0;
      f_have <= 1'b0;
    end else begin
      if (f_takes) f_in <= f_in + 2'd1;
      if (f_gives) f_out <= f_out + 2'd1;
      if (f_takes && f_in == f_number) begin
        f_have <= 1'b1;
        f_data <= {in_data, in_tag, in_row, in_id, in_beats, in_blind, in_follows, in_from};
      end else if (f_gives && f_out == f_number) begin
        f_have <= 1'b0;
      end
    end
    if (f_started && !rst) begin
      assert (f_in - f_out == {1'b0, s1_valid} + {1'b0, s2_valid});
      assert (f_have == (f_place < f_in - f_out));
      if (f_have && f_place == 2'd0 && s2_valid) assert ({s2_data, s2_tag, s2_row, s2_id, s2_beats, s2_blind, s2_follows, s2_from} == f_data);
      else if (f_have) assert ({s1_data, s1_tag, s1_row, s1_id, s1_beats, s1_blind, s1_follows, s1_from} == f_data);
      if (f_gives && f_out == f_number) assert (f_have && {out_data, out_tag, out_row, out_id, s2_beats, s2_blind, s2_follows, s2_from} == f_data);
    end
  end
