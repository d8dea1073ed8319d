// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a datagram, read in one of two ways: a line's words, cut at blanks and the line's end, each in a register before
// its reader sees it; or the number of bytes that a reader says.
//
// Beats stay as they are; what has been taken of the first one is a mask, and `view` shows the 8 bytes
// that follow. A word ends at the first delimiter that the mask leaves, so the next mask is known from the marks of
// two beats without moving them. A word of more than 8 bytes comes in pieces.
module line_window
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    // The datagram.
    input  logic        begins,     // one that is read; only when `drained`
    output logic        drained,    // the one before has been taken as a whole
    input  logic        drains,     // the rest of it is not read
    output logic        waits,      // the first beat is there
    output logic [7:0]  first_byte, // of a datagram of which nothing has been taken
    output logic        none_left,
    output logic [11:0] taken,      // bytes of it; `begins` makes it 0
    // Bytes.
    output logic        ready,      // `view` has 8 bytes, or all that there are
    output logic [63:0] view,
    input  logic        wants,      // they are taken, if `ready`
    input  logic [3:0]  take_bytes, // 1 to 8
    input  logic        take_ends,  // they are wanted, and reach the end of their beat
    output logic [2:0]  at,         // where in it they begin
    // Words of a line that has an end. After its last one comes none until the next start.
    input  logic        start,
    output logic        cutting,
    output logic        piece_valid,
    input  logic        piece_ready,
    output piece_t      piece
);
  // --- Beats, with each byte's marks.
  typedef struct packed {
    logic last;
    logic [7:0] present;  // bytes
    logic [7:0] blank;
    logic [7:0] ends;     // what ends a word: blank or lf
    logic [7:0] lf;
    logic [7:0] crlf;     // LFs after a CR
    logic [63:0] data;
  } beat_t;
  beat_t arrives, q0, q1, q2;
  logic v0, v1, v2, cr_before, accepts, pop;
  logic [8:0] cr;
  always_comb begin
    arrives.last = in_last;
    arrives.data = in_data;
    cr[0] = cr_before;
    for (int i = 0; i < 8; i++) begin
      arrives.present[i] = 4'(i) < in_bytes;
      arrives.blank[i] = arrives.present[i] && in_data[8*i+:8] == 8'h20;
      arrives.lf[i] = arrives.present[i] && in_data[8*i+:8] == 8'h0a;
      arrives.ends[i] = arrives.blank[i] || arrives.lf[i];
      cr[i+1] = in_data[8*i+:8] == 8'h0d;
      arrives.crlf[i] = arrives.lf[i] && cr[i];
    end
  end
  assign in_ready = !v2;
  assign accepts = in_valid && in_ready;
  logic moves;  // the second beat has a place
  assign moves = !v0 || pop;
  always_ff @(posedge clk) begin
    if (rst) begin
      v0 <= 1'b0;
      v1 <= 1'b0;
      v2 <= 1'b0;
      cr_before <= 1'b0;
    end else begin
      if (accepts) cr_before <= cr[8] && !in_last;
      if (moves) begin
        v0 <= v1;
        v1 <= v2 || accepts;
        v2 <= 1'b0;
      end else if (!v1) begin
        v1 <= accepts;
      end else if (accepts) begin
        v2 <= 1'b1;
      end
    end
    if (moves) q0 <= q1;
    if (moves || !v1) q1 <= v2 ? q2 : arrives;
    if (in_ready) q2 <= arrives;
  end

  // --- What has been taken.
  logic [7:0] rem, rem_next;   // bytes of the first beat that have not been
  logic [8:0] popped;
  logic follows;               // the second beat is the datagram's
  logic exhausted;             // the first beat has been taken as a whole
  logic cuts, gives;           // gives: a piece
  logic spare_valid;           // so that what a reader decides late is not what is cut
  piece_t spare;
  assign follows = v1 && !q0.last;
  assign exhausted = !rem[7] || (q0.last && (rem & q0.present) == '0);
  assign waits = v0;
  assign first_byte = q0.data[7:0];
  // (After the datagram's end nothing is read that matters.)
  assign ready = v0 && !drained && rem[7] && (q0.last || v1);
  assign none_left = drained || (v0 && q0.last && exhausted);
  logic [3:0] off;             // how many bytes of it have been; it follows from `rem`
  logic [2:0] at_next;         // `at`: its lower bits, in a register, as `view` waits for them
  assign off = {!rem[7], at};
  assign taken = {popped, 3'd0} + {8'd0, off};

  // 15 bytes, then 11, 9 and 8.
  function automatic logic [7:0] shown(logic [14:0] marks, logic [2:0] by);
    logic [10:0] a;
    logic [8:0] b;
    a = by[2] ? marks[14:4] : marks[10:0];
    b = by[1] ? a[10:2] : a[8:0];
    shown = by[0] ? b[8:1] : b[7:0];
  endfunction
  logic [7:0] lane[8];
  always_comb begin
    for (int k = 0; k < 8; k++) begin
      logic [14:0] bits;
      for (int i = 0; i < 8; i++) bits[i] = q0.data[8*i+k];
      for (int i = 0; i < 7; i++) bits[8+i] = q1.data[8*i+k];
      lane[k] = shown(bits, off[2:0]);
      for (int i = 0; i < 8; i++) view[8*i+k] = lane[k][i];
    end
  end

  // --- A word.
  logic [7:0] final0, final1;  // last bytes of what ends a word
  logic [7:0] end0;            // first bytes of it
  logic [6:0] end1;
  logic [7:0] behind0, behind1, not_blank;  // bytes after the first end; after a run of blanks
  logic any0, any1;
  logic word_starts, line_starts;
  logic at_blank;
  logic skips;                 // blanks
  logic [7:0] ends_here, blank_here;
  always_comb begin
    final0 = q0.ends & rem;
    final1 = q1.ends & ~rem;
    // A LF is the ninth byte where its CR is the eighth.
    final1 |= q1.crlf & ~{rem[6:0], 1'b0};
    end0 = q0.ends | {follows && q1.crlf[0], q0.crlf[7:1]};
    end1 = follows ? q1.ends[6:0] | q1.crlf[7:1] : '0;
    any0 = final0 != '0;
    any1 = final1 != '0;
    for (int i = 0; i < 8; i++) begin
      behind0[i] = 1'b0;
      behind1[i] = 1'b0;
      not_blank[i] = 1'b0;
      for (int j = 0; j < i; j++) begin
        behind0[i] |= final0[j];
        behind1[i] |= final1[j];
      end
      for (int j = 0; j <= i; j++) not_blank[i] |= rem[j] && !q0.blank[j];
    end
    ends_here = shown({end1, end0}, off[2:0]);
    blank_here = shown({q1.blank[6:0], q0.blank}, off[2:0]);
    at_blank = (q0.blank & rem & ~{rem[6:0], 1'b0}) != '0;
    skips = word_starts && !line_starts && at_blank;
  end
  // The place behind the first of these marks, and that of the first one; 0 if there is none, or the next beat's first.
  function automatic logic [2:0] behind(logic [7:0] marks);
    behind = '0;
    for (int i = 7; i >= 0; i--) if (marks[i]) behind = 3'(i + 1);
  endfunction
  function automatic logic [2:0] first(logic [7:0] marks);
    first = '0;
    for (int i = 7; i >= 0; i--) if (marks[i]) first = 3'(i);
  endfunction
  logic [7:0] lf_here;
  assign lf_here = shown({follows ? q1.lf[6:0] : 7'd0, q0.lf}, off[2:0]);
  piece_t next;
  always_comb begin
    next.data = view;
    next.minus = view[7:0] == "-";
    for (int i = 0; i < 8; i++) next.digit[i] = view[8*i+4+:4] == 4'd3 && view[8*i+:4] <= 4'd9;
    next.len = 4'd8;
    next.ends = ends_here != '0;
    next.ends_line = 1'b0;
    next.short_line = lf_here[2:0] != '0;
    for (int i = 7; i >= 0; i--) begin
      if (ends_here[i]) begin
        next.len = 4'(i);
        next.ends_line = !blank_here[i];
      end
    end
  end

  logic [2:0] sum;
  assign sum = at + take_bytes[2:0];
  assign cuts = cutting && ready && !spare_valid;
  logic take;
  assign take = wants && ready;
  assign gives = cuts && !skips;
  always_comb begin
    rem_next = rem;
    at_next = at;
    if (drains || (v0 && exhausted && !drained)) begin
      rem_next = '1;
      at_next = '0;
    end else if (take) begin
      at_next = sum;
      for (int i = 0; i < 8; i++) rem_next[i] = 3'(i) >= sum;
    end else if (cuts) begin
      if (skips) begin
        rem_next = not_blank;
        at_next = first(rem & ~q0.blank);
        if (!not_blank[7]) rem_next = '1;
      end else if (any0) begin
        rem_next = behind0;
        at_next = behind(final0);
        if (!behind0[7]) rem_next = '1;
      end else begin
        if (any1) rem_next = behind1;
        if (any1) at_next = behind(final1);
      end
    end
  end
  // The first beat goes: what decides it, side by side.
  logic cut_ends;
  assign cut_ends = skips ? (rem & ~q0.blank) == '0 : final0[6:0] == '0;
  assign pop = v0 && !drained && (drains || exhausted || ((q0.last || v1) && (take_ends ||
               (cutting && !spare_valid && cut_ends))));
  always_ff @(posedge clk) begin
    if (rst) begin
      rem <= '1;
      at <= '0;
      drained <= 1'b1;
      cutting <= 1'b0;
      piece_valid <= 1'b0;
      spare_valid <= 1'b0;
    end else begin
      rem <= rem_next;
      at <= at_next;
      if (begins) drained <= 1'b0;
      else if (pop && q0.last) drained <= 1'b1;
      if (start) cutting <= 1'b1;
      else if (gives && next.ends_line) cutting <= 1'b0;
      if (piece_ready || !piece_valid) begin
        piece_valid <= spare_valid || gives;
        spare_valid <= 1'b0;
      end else if (gives) begin
        spare_valid <= 1'b1;
      end
    end
    if (begins) popped <= '0;
    else if (pop) popped <= popped + 9'd1;
    if (start) begin
      line_starts <= 1'b1;
      word_starts <= 1'b1;
    end else if (gives) begin
      line_starts <= 1'b0;
      word_starts <= next.ends;
    end
    if (piece_ready || !piece_valid) piece <= spare_valid ? spare : next;
    if (!spare_valid) spare <= next;
  end

`ifdef FORMAL
  `include "line_window_formal.svh"
`endif
endmodule
